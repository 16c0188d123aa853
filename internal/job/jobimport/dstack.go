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

func (d *draft) dstack(root *yaml.Node) error {
	kind := node.Find(root, "type")
	if kind == nil || kind.Value != "task" {
		said := "nothing"
		if kind != nil {
			said = kind.Value
		}
		return fmt.Errorf("its type is %s, and only a task is a job that comes to an end", said)
	}
	var t dstackTask
	node.Each(root, func(key, v *yaml.Node) {
		if read := dstackFields[key.Value]; read != nil {
			read(d, &t, key, v)
			return
		}
		d.lose(key, key.Value, reason.Dstack.Of(key.Value))
	})
	if t.commands != "" && t.cd != "" {
		t.commands = "set -e\n" + t.cd + strings.TrimPrefix(t.commands, "set -e\n")
	}
	if !t.anyCapacity {
		d.otherwiseOnDemand("dstack takes on-demand where spot_policy is not set")
	}
	d.run(t.commands)
	if t.bash && d.command != "" {
		d.command, d.script = "", d.command
	}
	d.provide(root, variable.Dstack)
	return nil
}

// dstackTask collects the fields of a task that belong together.
type dstackTask struct {
	cd, commands string
	bash         bool
	anyCapacity  bool // spot_policy: auto
}

// dstackFields converts the fields that scrimp has an equivalent of.
var dstackFields = map[string]func(d *draft, t *dstackTask, key, v *yaml.Node){
	"type":     func(*draft, *dstackTask, *yaml.Node, *yaml.Node) {}, // already read
	"name":     func(d *draft, _ *dstackTask, _, v *yaml.Node) { d.name = spec.Label(v.Value) },
	"commands": func(_ *draft, t *dstackTask, _, v *yaml.Node) { t.commands = chain(v) },
	"shell": func(d *draft, t *dstackTask, key, v *yaml.Node) {
		if t.bash = strings.HasSuffix(v.Value, "bash"); v.Value == "bash" || strings.HasSuffix(v.Value, "/bash") {
			return
		}
		if v.Value != "sh" {
			d.lose(key, key.Value, "commands run under sh")
		}
	},
	"image": func(d *draft, _ *dstackTask, key, v *yaml.Node) {
		if !d.inImage(v.Value) {
			d.lose(key, key.Value, v.Value+" is no reference to an image")
		}
	},
	"env":         func(d *draft, _ *dstackTask, _, v *yaml.Node) { d.variables(v, "env", "${{") },
	"working_dir": func(_ *draft, t *dstackTask, _, v *yaml.Node) { t.cd = "cd " + quote(v.Value) + "\n" },
	"nodes":       func(d *draft, _ *dstackTask, _, v *yaml.Node) { d.onNodes(v.Value) },
	"resources":   func(d *draft, _ *dstackTask, _, v *yaml.Node) { node.Each(v, d.dstackResource) },
	"spot_policy": func(d *draft, t *dstackTask, _, v *yaml.Node) {
		t.anyCapacity = v.Value == "auto"
		if v.Value == string(market.Spot) || v.Value == string(market.OnDemand) {
			node.Set(d.resources, "capacity", node.Flow(node.List(node.Text(v.Value))))
		}
	},
	"instance_types": func(d *draft, _ *dstackTask, key, v *yaml.Node) {
		for _, name := range node.Values(v) {
			c := choice{resources: node.Object()}
			if !gpu.MachineType(c.resources, name) {
				d.lose(key, key.Value, "the catalogue does not know "+name+": give cpu, memory and gpu")
				continue
			}
			d.choices = append(d.choices, c)
		}
	},
	"regions":            dstackZones,
	"availability_zones": dstackZones,
	"max_price":          func(d *draft, _ *dstackTask, _, v *yaml.Node) { d.maxPrice = v.Value },
	"max_duration":       func(d *draft, _ *dstackTask, key, v *yaml.Node) { d.wallClock = d.span(key, v) },
	"stop_duration":      func(d *draft, _ *dstackTask, key, v *yaml.Node) { d.grace = d.span(key, v) },
	"utilization_policy": func(d *draft, _ *dstackTask, key, v *yaml.Node) {
		if window := node.Find(v, "time_window"); window != nil {
			d.idle = d.span(key, window)
			d.lose(key, key.Value, "idle looks at the whole machine, not at the share of its accelerators")
		}
	},
	"priority": func(d *draft, _ *dstackTask, key, v *yaml.Node) {
		d.lose(key, key.Value, "scrimp knows critical, normal and low, not "+v.Value)
	},
	"retry":        func(d *draft, _ *dstackTask, key, v *yaml.Node) { d.dstackRetry(key, v) },
	"retry_policy": func(d *draft, _ *dstackTask, key, v *yaml.Node) { d.dstackRetry(key, v) },
	"tags": func(d *draft, _ *dstackTask, _, v *yaml.Node) {
		node.Each(v, func(name, value *yaml.Node) { d.tags[name.Value] = value.Value })
	},
}

func dstackZones(d *draft, _ *dstackTask, _, v *yaml.Node) {
	node.Set(d.resources, "zones", node.Flow(node.List(node.Texts(node.Values(v))...)))
}

// chain joins the commands; each failure ends the job.
func chain(v *yaml.Node) string {
	lines := node.Values(v)
	if len(lines) > 1 {
		return "set -e\n" + strings.Join(lines, "\n")
	}
	return strings.Join(lines, "")
}

// quote quotes a path for the shell if necessary.
func quote(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// span parses a dstack duration: 2h, 1d, 1w, or seconds without a unit; off means none.
func (d *draft) span(key, v *yaml.Node) string {
	s := v.Value
	switch {
	case s == "off" || s == "false" || s == "-1" || v.Tag == "!!null":
		return ""
	case regexp.MustCompile(`^[0-9]+$`).MatchString(s):
		return s + "s"
	}
	var weeks int
	if n, err := fmt.Sscanf(s, "%dw", &weeks); n == 1 && err == nil && s == fmt.Sprintf("%dw", weeks) {
		return fmt.Sprintf("%dd", 7*weeks)
	}
	if _, err := spec.ParseDuration(s); err != nil {
		d.lose(key, key.Value, err.Error())
		return ""
	}
	return s
}

// dstackResource converts one field of resources. dstack's ranges are 4.., ..8 and 4..8.
func (d *draft) dstackResource(key, v *yaml.Node) {
	field := "resources." + key.Value
	switch key.Value {
	case "cpu":
		count := v.Value
		if v.Kind == yaml.MappingNode {
			count = "1.."
			if n := node.Find(v, "count"); n != nil {
				count = n.Value
			}
			if arch := node.Find(v, "arch"); arch != nil {
				d.lose(key, field+".arch", "machines are not chosen by architecture")
			}
		}
		if arch, rest, ok := strings.Cut(count, ":"); ok {
			d.lose(key, field, "machines are not chosen by architecture ("+arch+")")
			count = rest
		}
		d.ranged("cpus", count, "1", func(s string) string { return s })
	case "memory":
		d.ranged("memory", v.Value, "1MiB", node.Binary)
	case "disk":
		d.lose(key, field, reason.Disk)
	case "gpu":
		d.dstackGPU(key, v)
	default:
		d.lose(key, field, reason.DstackResources.Of(key.Value))
	}
}

// ranged converts a range; least replaces a missing lower end.
func (d *draft) ranged(to, s, least string, unit func(string) string) {
	low, high, isRange := strings.Cut(s, "..")
	low, high = strings.TrimSpace(low), strings.TrimSpace(high)
	switch {
	case !isRange:
		node.Set(d.resources, to, node.Text(unit(low)))
	case low == "" && high == "":
	case low == "":
		node.Set(d.resources, to, node.Text(least+".."+unit(high)))
	case high == "":
		node.Set(d.resources, to, node.Text(unit(low)+"+"))
	default:
		node.Set(d.resources, to, node.Text(unit(low)+".."+unit(high)))
	}
}

func (d *draft) dstackRetry(key, v *yaml.Node) {
	if v.Kind == yaml.ScalarNode {
		return // a job always continues after an interruption
	}
	node.Each(v, func(k, value *yaml.Node) {
		field := key.Value + "." + k.Value
		switch k.Value {
		case "on_events":
			for _, e := range node.Values(value) {
				if e == "error" {
					d.lose(k, field, "scrimp tries only listed exit statuses again: give retry.codes, such as [1]")
				}
			}
		case "duration":
			d.lose(k, field, "how long is said by the deadline")
		default:
			d.lose(k, field, "scrimp has nothing like it")
		}
	})
}
