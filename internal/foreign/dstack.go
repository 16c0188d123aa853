package foreign

import (
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

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
	cd, commands := "", ""
	each(root, func(key, v *yaml.Node) {
		switch k := key.Value; k {
		case "type":
		case "name":
			d.name = spec.Label(v.Value)
		case "commands":
			commands = chain(v)
		case "shell":
			if v.Value == "bash" || strings.HasSuffix(v.Value, "/bash") {
				return // below
			}
			if v.Value != "sh" {
				d.lose(key, k, "commands run under sh")
			}
		case "env":
			d.variables(v, "env", "${{")
		case "working_dir":
			cd = "cd " + quote(v.Value) + "\n"
		case "nodes":
			if v.Value != "1" {
				d.nodes = v.Value
			}
		case "resources":
			each(v, d.dstackResource)
		case "spot_policy":
			switch v.Value {
			case "spot", "on-demand":
				set(d.resources, "capacity", flow(list(text(v.Value))))
			}
		case "regions", "availability_zones":
			set(d.resources, "zones", flow(list(texts(values(v))...)))
		case "max_price":
			d.maxPrice = v.Value
		case "max_duration":
			d.wallClock = d.span(key, v)
		case "stop_duration":
			d.grace = d.span(key, v)
		case "utilization_policy":
			if window := find(v, "time_window"); window != nil {
				d.idle = d.span(key, window)
				d.lose(key, k, "idle looks at the whole machine, not at the share of its accelerators")
			}
		case "priority":
			d.lose(key, k, "scrimp knows critical, normal and low, not "+v.Value)
		case "retry", "retry_policy":
			d.dstackRetry(key, v)
		case "tags":
			each(v, func(name, value *yaml.Node) { d.tags[name.Value] = value.Value })
		default:
			d.lose(key, k, why(dstackLost[k]))
		}
	})
	if commands != "" && cd != "" {
		commands = "set -e\n" + cd + strings.TrimPrefix(commands, "set -e\n")
	}
	d.run(commands)
	if s := find(root, "shell"); s != nil && strings.HasSuffix(s.Value, "bash") && d.command != "" {
		d.command, d.script = "", d.command
	}
	d.aliases(root, "DSTACK", "dstack")
	return nil
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
	var names []string
	count := ""
	lost := func(what string) {
		d.lose(key, "resources.gpu", "accelerators are chosen by kind and count, not by "+what)
	}
	if v.Kind == yaml.MappingNode {
		each(v, func(k, value *yaml.Node) {
			switch k.Value {
			case "name":
				names = values(value)
			case "count":
				count = value.Value
			default:
				lost(k.Value)
			}
		})
	} else {
		for part := range strings.SplitSeq(v.Value, ":") {
			switch {
			case regexp.MustCompile(`^[0-9]*(\.\.[0-9]*)?$`).MatchString(part):
				count = part
			case regexp.MustCompile(`(?i)^[0-9.]*[gmt]b`).MatchString(part):
				lost("memory (" + part + ")")
			case part == "nvidia" || part == "amd" || part == "google" || part == "tenstorrent" || part == "intel":
				lost("vendor (" + part + ")")
			default:
				names = append(names, strings.Split(part, ",")...)
			}
		}
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

func join(name, count string) string {
	if count == "" || count == "1" {
		return name
	}
	return name + ":" + count
}

func (d *draft) dstackRetry(key, v *yaml.Node) {
	if v.Kind == yaml.ScalarNode {
		return // interruptions are always gone on after
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
