package awstest

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

type template struct {
	seq              int
	id, region, name string
	created          time.Time
	versions         []templateVersion
	tags             tags
}

type templateVersion struct {
	n       int
	about   string
	token   string
	created time.Time
	data    url.Values // as in the request, without the prefix
	spec    spec
}

// created is the result of an idempotent request.
type created struct {
	question string
	answer   *node
}

func createLaunchTemplate(c *call) (*node, error) {
	name, about, token := c.must("LaunchTemplateName"), c.str("VersionDescription"), c.str("ClientToken")
	specs := c.tagSpecs(c.params)
	d := c.sub("LaunchTemplateData")
	data, sp := c.templateData(d)
	if err := c.ready(); err != nil {
		return nil, err
	}
	if len(name) < 3 || len(name) > 128 {
		return nil, bad("InvalidLaunchTemplateName.MalformedException",
			"The launch template name %q has not 3 to 128 characters", name)
	}
	if done, err := c.before(token); done != nil || err != nil {
		return done, err
	}
	for _, t := range c.s.templates {
		if t.region == c.region && t.name == name {
			return nil, bad("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
		}
	}
	c.s.seq++
	t := &template{seq: c.s.seq, id: c.s.id("lt"), region: c.region, name: name, created: c.now,
		tags:     tagsFor(specs, "launch-template"),
		versions: []templateVersion{{1, about, token, c.now, data, sp}}}
	c.s.templates = append(c.s.templates, t)
	return c.after(token, x("out", showTemplate(t))), nil
}

// before returns the result of an earlier request with the same client token.
func (c *call) before(token string) (*node, error) {
	was := c.s.created[c.region+" "+c.action+" "+token]
	if token == "" || was == nil {
		return nil, nil
	}
	if was.question != c.question() {
		return nil, bad("IdempotentParameterMismatch", "The request uses the same client token as a previous, but "+
			"non-identical "+
			"request.")
	}
	return was.answer, nil
}

func (c *call) after(token string, answer *node) *node {
	if token != "" {
		c.s.created[c.region+" "+c.action+" "+token] = &created{c.question(), answer}
	}
	return answer
}

// templateData parses the data of a version, both raw and as a launch.
func (c *call) templateData(d params) (url.Values, spec) {
	data := url.Values{}
	for k, v := range d.all {
		if rest, ok := strings.CutPrefix(k, d.prefix); ok {
			data[rest] = v
		}
	}
	return data, c.spec(d)
}

func showTemplate(t *template) *node {
	return x("launchTemplate", x("launchTemplateId", t.id), x("launchTemplateName", t.name), x("createTime", t.created),
		x("createdBy", "arn:aws:iam::123456789012:user/test"), x("defaultVersionNumber", 1),
		x("latestVersionNumber", t.versions[len(t.versions)-1].n), t.tags.show())
}

func createLaunchTemplateVersion(c *call) (*node, error) {
	id, name, about, token := c.str("LaunchTemplateId"), c.str("LaunchTemplateName"), c.str("VersionDescription"),
		c.str("ClientToken")
	source := c.str("SourceVersion")
	data, sp := c.templateData(c.sub("LaunchTemplateData"))
	if err := c.ready(); err != nil {
		return nil, err
	}
	t, err := c.template(id, name)
	if err != nil {
		return nil, err
	}
	if done, err := c.before(token); done != nil || err != nil {
		return done, err
	}
	if source != "" {
		v, err := t.version(source)
		if err != nil {
			return nil, err
		}
		base := maps.Clone(v.data)
		maps.Copy(base, data)
		data, sp = base, v.spec.over(sp)
	}
	t.versions = append(t.versions, templateVersion{len(t.versions) + 1, about, token, c.now, data, sp})
	n := showVersion(t, t.versions[len(t.versions)-1])
	n.name = "launchTemplateVersion"
	return c.after(token, x("out", n)), nil
}

func (c *call) template(id, name string) (*template, error) {
	if (id == "") == (name == "") {
		return nil, bad("MissingParameter", "Specify either a launch template ID or a launch template name")
	}
	for _, t := range c.s.templates {
		if t.region == c.region && (t.id == id || id == "" && t.name == name) {
			return t, nil
		}
	}
	if id != "" {
		return nil, bad("InvalidLaunchTemplateId.NotFound",
			"The specified launch template, with template ID %s, does not exist.", id)
	}
	return nil, bad("InvalidLaunchTemplateName.NotFoundException",
		"The specified launch template, with template name %s, does "+
			"not exist.", name)
}

func (t *template) version(text string) (templateVersion, error) {
	switch text {
	case "", "$Default":
		return t.versions[0], nil
	case "$Latest":
		return t.versions[len(t.versions)-1], nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > len(t.versions) {
		return templateVersion{}, bad("InvalidLaunchTemplateId.VersionNotFound",
			"Could not find launch template version %s for "+
				"launch template %s", text, t.id)
	}
	return t.versions[n-1], nil
}

// showVersion returns the parts of the data that clients set and read: some names in requests differ from those in
// responses.
func showVersion(t *template, v templateVersion) *node {
	d := x("launchTemplateData", opt("imageId", v.spec.image), opt("instanceType", v.spec.typ), opt("userData",
		v.spec.userData),
		opt("keyName", v.spec.key), opt("instanceInitiatedShutdownBehavior", v.spec.shutdown),
		texts("securityGroupIdSet", v.spec.groups))
	if v.spec.spot {
		d.kids = append(d.kids, x("instanceMarketOptions", x("marketType", "spot")))
	}
	if v.spec.profile != "" || v.spec.arn != "" {
		d.kids = append(d.kids, x("iamInstanceProfile", opt("name", v.spec.profile), opt("arn", v.spec.arn)))
	}
	if v.spec.tokens != "" {
		d.kids = append(d.kids, x("metadataOptions", x("httpTokens", v.spec.tokens)))
	}
	if len(v.spec.disks) > 0 {
		d.kids = append(d.kids, items("blockDeviceMappingSet", v.spec.disks, func(b disk) *node {
			return x("item", x("deviceName", b.device), x("ebs", x("volumeSize", b.gb), opt("volumeType", b.typ),
				x("deleteOnTermination", !b.keep)))
		}))
	}
	if len(v.spec.tags) > 0 {
		d.kids = append(d.kids, items("tagSpecificationSet", v.spec.tags, func(s tagSpec) *node {
			return x("item", x("resourceType", s.resource), s.tags.show())
		}))
	}
	return x("item", x("launchTemplateId", t.id), x("launchTemplateName", t.name), x("versionNumber", v.n),
		opt("versionDescription", v.about), x("createTime", v.created), x("createdBy", "arn:aws:iam::123456789012:user/test"),
		x("defaultVersion", v.n == 1), d)
}

func describeLaunchTemplates(c *call) (*node, error) {
	names := c.list("LaunchTemplateName")
	for _, n := range names {
		if _, err := c.template("", n); err != nil {
			return nil, first(err)
		}
	}
	list := mine(c, c.s.templates, func(t *template) (int, string, string, tags) { return t.seq, t.id, t.region, t.tags })
	if names != nil {
		list = slices.DeleteFunc(list, func(o owned[*template]) bool { return !slices.Contains(names, o.v.name) })
	}
	return describe(c, "LaunchTemplateId", "lt-", "InvalidLaunchTemplateId", "launch template", "launchTemplates", list,
		[]string{"tags", "launch-template-name", "create-time"}, func(t *template, name string) []string {
			if name == "create-time" {
				return []string{t.created.Format(time.RFC3339)}
			}
			return []string{t.name}
		}, showTemplate)
}

func describeLaunchTemplateVersions(c *call) (*node, error) {
	id, name, wanted := c.str("LaunchTemplateId"), c.str("LaunchTemplateName"), c.list("LaunchTemplateVersion")
	t, err := c.template(id, name)
	if err != nil {
		return nil, first(c.end(), err)
	}
	list := t.versions
	if wanted != nil {
		list = nil
		for _, w := range wanted {
			v, err := t.version(w)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
	}
	list, next, err := page(c, list, func(v templateVersion) int { return v.n }, 1, 200)
	if err := first(c.ready(), err); err != nil {
		return nil, err
	}
	return x("out", items("launchTemplateVersionSet", list, func(v templateVersion) *node { return showVersion(t, v) }),
		next), nil
}

func deleteLaunchTemplate(c *call) (*node, error) {
	id, name := c.str("LaunchTemplateId"), c.str("LaunchTemplateName")
	if err := c.ready(); err != nil {
		return nil, err
	}
	t, err := c.template(id, name)
	if err != nil {
		return nil, err
	}
	c.s.templates = slices.DeleteFunc(c.s.templates, func(o *template) bool { return o == t })
	return x("out", showTemplate(t)), nil
}

// fromTemplate returns d over the template that the request names.
func (c *call) fromTemplate(p params, d spec) (spec, error) {
	if !p.present() {
		return d, nil
	}
	t, err := c.template(p.str("LaunchTemplateId"), p.str("LaunchTemplateName"))
	if err != nil {
		return d, err
	}
	v, err := t.version(p.str("Version"))
	if err != nil {
		return d, err
	}
	return v.spec.over(d), nil
}
