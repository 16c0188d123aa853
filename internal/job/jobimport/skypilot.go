package jobimport

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/jobimport/gpu"
	"scrimp/internal/job/jobimport/node"
	"scrimp/internal/job/jobimport/reason"
	"scrimp/internal/job/jobimport/variable"
	"scrimp/internal/job/spec"
	"scrimp/internal/market"
)

func (d *draft) skypilot(root *yaml.Node) error {
	node.Each(root, func(key, v *yaml.Node) {
		switch k := key.Value; k {
		case "name":
			d.name = spec.Label(v.Value)
		case "workdir":
			if v.Kind == yaml.MappingNode {
				d.lose(key, k, "a repository is not cloned: clone it, and name the folder")
				return
			}
			d.folder(key, v.Value)
		case "num_nodes":
			d.onNodes(v.Value)
		case "run":
			d.run(v.Value)
		case "setup":
			d.prepare(v.Value)
		case "envs":
			d.variables(v, "envs", "")
		case "secrets":
			node.Each(v, func(name, value *yaml.Node) {
				d.secrets = append(d.secrets, name.Value)
				if value.Value != "" && value.Tag != "!!null" {
					d.lose(name, "secrets."+name.Value, "a job file holds no secret's value: export it in the shell that submits")
				}
			})
		case "resources":
			d.skyResources(v)
		case "file_mounts":
			node.Each(v, d.skyMount)
		default:
			d.lose(key, k, reason.SkyPilot.Of(k))
		}
	})
	d.otherwiseOnDemand("SkyPilot takes on-demand where use_spot is not set")
	d.provide(root, variable.SkyPilot)
	return nil
}

// folder sets the work folder, relative to the job file.
func (d *draft) folder(key *yaml.Node, dir string) {
	switch {
	case dir == "." || dir == "":
	case strings.HasPrefix(dir, "~") || strings.Contains(dir, "$"):
		d.lose(key, key.Value, fmt.Sprintf("%s is not expanded: give workdir as a path", dir))
	default:
		d.workdir = dir
	}
}

// variables converts env. A name without a value, or with a reference to secrets, becomes a secret.
func (d *draft) variables(v *yaml.Node, field, reference string) {
	add := func(at *yaml.Node, name, value string, given bool) {
		switch {
		case strings.HasPrefix(name, "SCRIMP_"):
			d.lose(at, field+"."+name, "scrimp sets it itself")
		case !given:
			d.secrets = append(d.secrets, name)
			d.remarks["secrets"] = "Taken from the shell that submits, where the other file had no value."
		case reference != "" && strings.Contains(value, reference):
			inner := regexp.MustCompile(`^\$\{\{\s*secrets\.(\w+)\s*\}\}$`).FindStringSubmatch(value)
			if inner != nil && inner[1] == name {
				d.secrets = append(d.secrets, name)
				return
			}
			d.lose(at, field+"."+name, value+" is not replaced: export "+name+
				" in the shell that submits, and name it under secrets")
		default:
			d.env[name] = value
		}
	}
	if v.Kind == yaml.SequenceNode {
		for _, item := range node.Items(v) {
			name, value, given := strings.Cut(item.Value, "=")
			add(item, name, value, given)
		}
		return
	}
	node.Each(v, func(name, value *yaml.Node) { add(name, name.Value, value.Value, value.Tag != "!!null") })
}

func (d *draft) skyMount(target, source *yaml.Node) {
	field := "file_mounts." + target.Value
	from, store := source, ""
	if source.Kind == yaml.MappingNode {
		from = node.Find(source, "source")
		if s := node.Find(source, "store"); s != nil {
			store = s.Value
		}
		if from == nil {
			d.lose(target, field,
				"buckets are neither made nor mounted; checkpoints and outputs are kept without one ("+store+")")
			return
		}
	}
	if strings.Contains(from.Value, "://") {
		d.data = append(d.data, node.Object(node.Text("url"), node.Text(from.Value)))
		d.lose(target, field, "nothing is mounted at "+target.Value+": the program reads "+from.Value+
			" itself; data keeps the URL")
		return
	}
	d.lose(target, field, "only the work folder is copied: put "+from.Value+" into it")
}

func (d *draft) skyResources(v *yaml.Node) {
	var alternatives, ordered *yaml.Node
	node.Each(v, func(key, value *yaml.Node) {
		switch key.Value {
		case "any_of":
			alternatives = value
		case "ordered":
			ordered = value
		case "job_recovery", "spot_recovery":
			d.skyRecovery(key, value)
		case "max_hourly_cost":
			d.maxPrice = value.Value
		case "labels":
			node.Each(value, func(name, value *yaml.Node) { d.tags[name.Value] = value.Value })
		default:
			d.skyResource(d.resources, &d.kinds, key, value, "resources.")
		}
	})
	d.ordered = d.ordered || ordered != nil
	plain := false // there is an alternative that adds nothing: the resources beside the alternatives
	for _, item := range append(node.Items(alternatives), node.Items(ordered)...) {
		c := choice{resources: node.Object()}
		node.Each(item, func(key, value *yaml.Node) { d.skyResource(c.resources, &c.kinds, key, value, "resources.any_of.") })
		if own := len(c.resources.Content)+len(c.kinds) > 0; own || !plain {
			d.choices, plain = append(d.choices, c), plain || !own
		}
	}
	if plain && len(d.choices) == 1 {
		d.choices = nil
	}
}

// skyImage converts image_id, which names a container image for the whole job.
func (d *draft) skyImage(key, v *yaml.Node, prefix string) {
	image, docker := strings.CutPrefix(v.Value, "docker:")
	if !docker || prefix != "resources." || !d.inImage(image) {
		d.lose(key, prefix+key.Value, reason.SkyPilotResources.Of(key.Value))
	}
}

// skyResource converts one field of resources into r, or into kinds if it names several accelerators.
func (d *draft) skyResource(r *yaml.Node, kinds *[]string, key, v *yaml.Node, prefix string) {
	switch k := key.Value; k {
	case "cpus":
		node.Set(r, "cpus", node.Text(v.Value))
	case "memory":
		if strings.HasSuffix(v.Value, "x") {
			d.lose(key, prefix+k, "memory is not given by processor: give it in GiB, such as 32GiB+")
			return
		}
		node.Set(r, "memory", node.Text(node.GiB(v.Value)))
	case "instance_type":
		if !gpu.MachineType(r, v.Value) {
			d.lose(key, prefix+k, reason.SkyPilotResources.Of(k))
			return
		}
		d.remarks["resources"] = "What a " + v.Value + " has: scrimp takes any machine that has it."
	case "disk_size":
		d.lose(key, prefix+k, reason.Disk)
	case "use_spot":
		capacity := map[bool]market.Capacity{true: market.Spot, false: market.OnDemand}[node.True(v)]
		node.Set(r, "capacity", node.Flow(node.List(node.Text(string(capacity)))))
	case "region", "zone":
		node.Set(r, "zones", node.Flow(node.List(node.Text(v.Value))))
	case "cloud", "infra":
		place, ok := node.Place(v.Value)
		if k == "cloud" || !ok {
			d.lose(key, prefix+k, "offers are chosen by price and zone, whatever the cloud")
			return
		}
		node.Set(r, "zones", node.Flow(node.List(node.Text(place))))
	case "image_id":
		d.skyImage(key, v, prefix)
	case "accelerators", "gpus":
		d.skyAccelerators(r, kinds, v)
	default:
		d.lose(key, prefix+k, reason.SkyPilotResources.Of(k))
	}
}

// skyAccelerators parses H100:8, {H100: 8}, and lists of them. The job needs one of them; a list of strings is in order
// of preference.
func (d *draft) skyAccelerators(r *yaml.Node, kinds *[]string, v *yaml.Node) {
	var all []string
	node.Each(v, func(name, count *yaml.Node) {
		s := name.Value
		if slice, ok := gpu.Slice(s); ok {
			all = append(all, slice)
			return
		}
		if count.Value != "" && count.Tag != "!!null" {
			s += ":" + count.Value
		}
		all = append(all, s)
	})
	for _, item := range node.Items(v) {
		if item.Kind != yaml.ScalarNode {
			continue
		}
		slice, _, _ := strings.Cut(item.Value, ":")
		if of, ok := gpu.Slice(slice); ok {
			all = append(all, of)
		} else {
			all = append(all, item.Value)
		}
	}
	if len(all) == 1 {
		node.Set(r, "accelerator", node.Text(all[0]))
		return
	}
	*kinds, d.ordered = all, d.ordered || v.Kind == yaml.SequenceNode
}

func (d *draft) skyRecovery(key, v *yaml.Node) {
	field := "resources." + key.Value
	if v.Kind == yaml.ScalarNode {
		if !strings.EqualFold(v.Value, "none") && v.Tag != "!!null" {
			d.lose(key, field, "where to go on after an interruption is decided by price and deadline")
		}
		return
	}
	d.retry = node.Object()
	node.Each(v, func(k, value *yaml.Node) {
		switch k.Value {
		case "max_restarts_on_errors":
			if value.Value != "0" {
				node.Set(d.retry, "max", node.Text(value.Value))
			}
			d.lose(k, field+"."+k.Value,
				"scrimp tries only listed exit statuses again: give retry.codes, such as [1]")
		case "recover_on_exit_codes":
			node.Set(d.retry, "codes", node.Flow(node.List(node.Items(value)...)))
		default:
			d.lose(k, field+"."+k.Value, "where to go on after an interruption is decided by price and deadline")
		}
	})
	if node.Find(d.retry, "codes") != nil {
		for i, l := range d.lost { // the listed statuses are the retried ones
			if l.Field == field+".max_restarts_on_errors" {
				d.lost = append(d.lost[:i], d.lost[i+1:]...)
				break
			}
		}
	}
}
