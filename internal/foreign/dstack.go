package foreign

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"scrimp/internal/market"
	"scrimp/internal/spec"
)

// What a dstack task may say that scrimp has no field for.
var dstackLost = map[string]string{
	"python":              "Python is not installed: put what the program needs into setup",
	"nvcc":                "CUDA is not installed: put what the program needs into setup",
	"image":               "the program runs on the machine as it is, in no container",
	"docker":              "the program runs on the machine as it is, in no container",
	"privileged":          "the program runs on the machine as it is, in no container",
	"registry_auth":       "the program runs on the machine as it is, in no container",
	"entrypoint":          "the program runs on the machine as it is, in no container",
	"user":                "the program runs as the agent's user",
	"ports":               "no port is opened",
	"files":               "only the work folder is copied: put the files into it",
	"repos":               "a repository is not cloned: clone it, and name the folder",
	"volumes":             "volumes are not mounted; checkpoints and outputs are kept without one",
	"backends":            "offers are chosen by price and zone, whatever the cloud",
	"instance_types":      "machines are chosen by what they have, not by name",
	"fleets":              "scrimp rents a machine for each attempt",
	"reservation":         "reservations are not named in a job file",
	"creation_policy":     "scrimp rents a machine for each attempt",
	"idle_duration":       "machines are given back when the job is over",
	"startup_order":       "the job runs on one machine",
	"stop_criteria":       "the job runs on one machine",
	"schedule":            "jobs are submitted by hand or by cron",
	"single_branch":       "a repository is not cloned",
	"inactivity_duration": "it is for development environments",
}

func (d *draft) dstack(root *yaml.Node) error {
	kind := find(root, "type")
	if kind == nil || kind.Value != "task" {
		said := "nothing"
		if kind != nil {
			said = kind.Value
		}
		return fmt.Errorf("its type is %s, and only a task is a job that comes to an end", said)
	}
	var t dstackTask
	each(root, func(key, v *yaml.Node) {
		if read := dstackFields[key.Value]; read != nil {
			read(d, &t, key, v)
			return
		}
		d.lose(key, key.Value, why(dstackLost[key.Value]))
	})
	if t.commands != "" && t.cd != "" {
		t.commands = "set -e\n" + t.cd + strings.TrimPrefix(t.commands, "set -e\n")
	}
	d.run(t.commands)
	if t.bash && d.command != "" {
		d.command, d.script = "", d.command
	}
	d.aliases(root, "DSTACK", "dstack")
	return nil
}

// dstackTask is what the fields of a task add up to.
type dstackTask struct {
	cd, commands string
	bash         bool
}

// dstackFields read the fields that scrimp has something like.
var dstackFields = map[string]func(d *draft, t *dstackTask, key, v *yaml.Node){
	"type":     func(*draft, *dstackTask, *yaml.Node, *yaml.Node) {}, // it was read
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
	"env":         func(d *draft, _ *dstackTask, _, v *yaml.Node) { d.variables(v, "env", "${{") },
	"working_dir": func(_ *draft, t *dstackTask, _, v *yaml.Node) { t.cd = "cd " + quote(v.Value) + "\n" },
	"nodes": func(d *draft, _ *dstackTask, key, v *yaml.Node) {
		if v.Value != "1" {
			d.lose(key, key.Value, oneMachine)
		}
	},
	"resources": func(d *draft, _ *dstackTask, _, v *yaml.Node) { each(v, d.dstackResource) },
	"spot_policy": func(d *draft, _ *dstackTask, _, v *yaml.Node) {
		if v.Value == string(market.Spot) || v.Value == string(market.OnDemand) {
			set(d.resources, "capacity", flow(list(text(v.Value))))
		}
	},
	"regions":            dstackZones,
	"availability_zones": dstackZones,
	"max_price":          func(d *draft, _ *dstackTask, _, v *yaml.Node) { d.maxPrice = v.Value },
	"max_duration":       func(d *draft, _ *dstackTask, key, v *yaml.Node) { d.wallClock = d.span(key, v) },
	"stop_duration":      func(d *draft, _ *dstackTask, key, v *yaml.Node) { d.grace = d.span(key, v) },
	"utilization_policy": func(d *draft, _ *dstackTask, key, v *yaml.Node) {
		if window := find(v, "time_window"); window != nil {
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
		each(v, func(name, value *yaml.Node) { d.tags[name.Value] = value.Value })
	},
}

func dstackZones(d *draft, _ *dstackTask, _, v *yaml.Node) {
	set(d.resources, "zones", flow(list(texts(values(v))...)))
}

// chain joins the commands, each of which ends the job when it fails.
func chain(v *yaml.Node) string {
	lines := values(v)
	if len(lines) > 1 {
		return "set -e\n" + strings.Join(lines, "\n")
	}
	return strings.Join(lines, "")
}

// quote protects a path from the shell where it needs to.
func quote(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func values(v *yaml.Node) []string {
	var list []string
	for _, item := range items(v) {
		list = append(list, strings.TrimRight(item.Value, "\n"))
	}
	return list
}

// span reads a span as dstack writes it: 2h, 1d, 1w, or seconds without a unit; off is none.
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

// dstackResource carries one field of resources over. dstack's ranges are 4.., ..8 and 4..8.
func (d *draft) dstackResource(key, v *yaml.Node) {
	field := "resources." + key.Value
	switch key.Value {
	case "cpu":
		count := v.Value
		if v.Kind == yaml.MappingNode {
			count = "1.."
			if n := find(v, "count"); n != nil {
				count = n.Value
			}
			if arch := find(v, "arch"); arch != nil {
				d.lose(key, field+".arch", "machines are not chosen by architecture")
			}
		}
		if arch, rest, ok := strings.Cut(count, ":"); ok {
			d.lose(key, field, "machines are not chosen by architecture ("+arch+")")
			count = rest
		}
		d.ranged(key, field, "cpus", count, func(s string) string { return s })
	case "memory":
		d.ranged(key, field, "memory", v.Value, binary)
	case "disk":
		size := v.Value
		if s := find(v, "size"); s != nil {
			size = s.Value
		}
		d.ranged(key, field, "disk", size, binary)
	case "gpu":
		d.dstackGPU(key, v)
	default:
		reason := ""
		if key.Value == "shm_size" {
			reason = "the program runs in no container, so shared memory is the machine's"
		}
		d.lose(key, field, why(reason))
	}
}

// binary writes dstack's GB, which is 1024³, as GiB.
func binary(s string) string {
	if bareNumber.MatchString(s) {
		return s + "GiB"
	}
	return regexp.MustCompile(`(?i)\s*([kmgt])i?b?$`).ReplaceAllStringFunc(s, func(u string) string {
		return strings.ToUpper(strings.TrimSpace(u)[:1]) + "iB"
	})
}

func (d *draft) ranged(key *yaml.Node, field, to, s string, unit func(string) string) {
	low, high, isRange := strings.Cut(s, "..")
	low, high = strings.TrimSpace(low), strings.TrimSpace(high)
	switch {
	case !isRange:
		set(d.resources, to, text(unit(low)))
	case low == "" && high == "":
	case low == "":
		d.lose(key, field, "a limit above without one below ("+s+") has no meaning: the cheapest machine is taken anyway")
	case high == "":
		set(d.resources, to, text(unit(low)+"+"))
	default:
		set(d.resources, to, text(unit(low)+".."+unit(high)))
	}
}

// dstackGPU reads 2, H100, H100:8, A100:80GB:4..8, nvidia:24GB, and the same as a map.
func (d *draft) dstackGPU(key, v *yaml.Node) {
	names, count, lost := dstackAccelerator(v)
	for _, what := range lost {
		d.lose(key, "resources.gpu", "accelerators are chosen by kind and count, not by "+what)
	}
	if low, high, ok := strings.Cut(count, ".."); ok && high == "" {
		count = low + "+"
	}
	switch {
	case count == "0" || count == "0+":
		return
	case len(names) == 0:
		d.lose(key, "resources.gpu", "the kind of accelerator is not said: give accelerator, such as "+join("H100", count))
	case len(names) == 1:
		set(d.resources, "accelerator", text(join(names[0], count)))
	default:
		for i, n := range names {
			d.alternative(i, object(text("accelerator"), text(join(n, count))), false)
		}
	}
}

// dstackVendors are words that say whose accelerators they are.
var dstackVendors = []string{"nvidia", "amd", "google", "tenstorrent", "intel"}

// dstackAccelerator takes kinds and count out of an accelerator, and says what else is there.
func dstackAccelerator(v *yaml.Node) (names []string, count string, lost []string) {
	if v.Kind == yaml.MappingNode {
		each(v, func(k, value *yaml.Node) {
			switch k.Value {
			case "name":
				names = values(value)
			case "count":
				count = value.Value
			default:
				lost = append(lost, k.Value)
			}
		})
		return names, count, lost
	}
	for part := range strings.SplitSeq(v.Value, ":") {
		switch {
		case regexp.MustCompile(`^[0-9]*(\.\.[0-9]*)?$`).MatchString(part):
			count = part
		case regexp.MustCompile(`(?i)^[0-9.]*[gmt]b`).MatchString(part):
			lost = append(lost, "memory ("+part+")")
		case slices.Contains(dstackVendors, part):
			lost = append(lost, "vendor ("+part+")")
		default:
			names = append(names, strings.Split(part, ",")...)
		}
	}
	return names, count, lost
}

func join(name, count string) string {
	if count == "" || count == "1" {
		return name
	}
	return name + ":" + count
}

func (d *draft) dstackRetry(key, v *yaml.Node) {
	if v.Kind == yaml.ScalarNode {
		return // a job always goes on after an interruption
	}
	each(v, func(k, value *yaml.Node) {
		field := key.Value + "." + k.Value
		switch k.Value {
		case "on_events":
			for _, e := range values(value) {
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
