package spec

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"scrimp/internal/lib/identity"
)

// bound limits the contents of a job file's field: the log keeps them forever, and its tags are on every posting.
type bound struct {
	bytes int // of a text, and of each text in a list or a map
	items int // of a list or a map
	key   int // bytes of each map key
}

// standardBound applies to fields that mosts does not list.
var standardBound = bound{bytes: 1024, items: 200, key: 255}

// mosts holds the bounds of fields, by type and name in the file.
var mosts = map[string]bound{
	"Job.command": {bytes: 128 << 10}, "Job.setup": {bytes: 128 << 10}, "Job.args": {bytes: 32 << 10, items: 1000},
	"Job.env": {bytes: 32 << 10}, "Job.outputs": {items: 100},
	"Notify.webhook": {bytes: 2048}, "Job.workdir": {bytes: 4096},
	"Job.image": {bytes: longestImage}, "Variant.image": {bytes: longestImage},
	"Job.team": {bytes: identity.LongestName}, "Job.project": {bytes: identity.LongestName},
	"Job.environment": {bytes: identity.LongestLabel}, "Job.model_version": {bytes: identity.LongestLabel},
	"Job.tags":   {bytes: identity.LongestLabel, items: 32, key: identity.LongestName},
	"Job.any_of": {items: 32}, "Job.ladder": {items: 32}, "Job.data": {items: 100},
	"Variant.args": {bytes: 32 << 10, items: 1000}, "Variant.env": {bytes: 32 << 10}, "Variant.name": {bytes: MaxName},
	"Variant.engine": {bytes: 128},
	"Rung.use":       {bytes: MaxName}, "Rung.zones": {items: 100}, "Resources.zones": {items: 100},
	"Resources.capacity": {items: 8}, "Metric.name": {bytes: 128}, "Retry.codes": {items: 255},
	"Data.path": {bytes: 4096}, "Data.name": {bytes: 32}, "Checkpoint.store": {bytes: 2048},
	"Progress.pattern": {bytes: 4096},
	"Progress.saved":   {bytes: 4096},
	"Notify.email":     {bytes: longestMailbox, items: 20}, "Notify.on": {items: 8},
}

// boundOf returns the bound of a field of t.
func boundOf(t reflect.Type, name string) bound {
	b := mosts[t.Name()+"."+name]
	if b.bytes == 0 {
		b.bytes = standardBound.bytes
	}
	if b.items == 0 {
		b.items = standardBound.items
	}
	if b.key == 0 {
		b.key = standardBound.key
	}
	return b
}

// bounds checks every text, list and map against its bound.
func (c *checker) bounds() { c.within(reflect.ValueOf(&c.j).Elem(), "", standardBound) }

func (c *checker) within(v reflect.Value, path string, b bound) {
	switch v.Kind() {
	case reflect.String:
		c.wrong(v.Len() > b.bytes, path, fmt.Sprintf("has more than %d bytes", b.bytes), "shorten it")
	case reflect.Slice:
		c.wrong(v.Len() > b.items, path, fmt.Sprintf("has more than %d items", b.items), "leave some out")
		for i := range min(v.Len(), b.items) {
			c.within(v.Index(i), fmt.Sprintf("%s[%d]", path, i), b)
		}
	case reflect.Map:
		c.wrong(v.Len() > b.items, path, fmt.Sprintf("has more than %d items", b.items), "leave some out")
		if texts, ok := v.Interface().(map[string]string); ok && v.Len() <= b.items {
			for _, key := range slices.Sorted(maps.Keys(texts)) {
				c.wrong(len(key) > b.key, path, fmt.Sprintf("has a key of more than %d bytes", b.key), "shorten it")
				c.within(reflect.ValueOf(texts[key]), path+"."+key, b)
			}
		}
	case reflect.Struct:
		for i, f := range layout[v.Type()] {
			if v.Field(i).IsZero() {
				continue // most fields are unset, and this check runs on each submission
			}
			at := f.name
			if path != "" {
				at = path + "." + at
			}
			c.within(v.Field(i), at, boundOf(v.Type(), f.name))
		}
	}
}

// labels checks that names used for accounting have one spelling.
func (c *checker) labels() {
	for _, f := range []struct{ field, text string }{{"team", c.j.Team}, {"project", c.j.Project}} {
		fix := identity.WrongName(f.text)
		c.wrong(f.text != "" && fix != "", f.field, fmt.Sprintf("is %q", cut(f.text)), fix)
	}
	for _, f := range []struct{ field, text string }{{"environment", c.j.Environment},
		{"model_version", c.j.ModelVersion}} {
		fix := identity.WrongLabel(f.text)
		c.wrong(fix != "", f.field, fmt.Sprintf("is %q", cut(f.text)), fix)
	}
	if len(c.j.Tags) > boundOf(reflect.TypeFor[Job](), "tags").items {
		return // already reported
	}
	for _, key := range slices.Sorted(maps.Keys(c.j.Tags)) {
		fix, field := identity.WrongName(key), "tags."+cut(key)
		c.wrong(fix != "", field, "is not the name of a tag", fix)
		fix = identity.WrongLabel(c.j.Tags[key])
		c.wrong(fix != "", field, fmt.Sprintf("is %q", cut(c.j.Tags[key])), fix)
	}
}

// cut returns the beginning of a text for a message.
func cut(text string) string { return fmt.Sprintf("%.80s", text) }
