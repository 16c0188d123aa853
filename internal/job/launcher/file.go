package launcher

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File reads a configuration file that the command names: accelerate's, in YAML, or DeepSpeed's, in JSON. Flags take
// precedence over it, as in these programs. File returns the file that it names in turn, or "".
func (s *Settings) File(name string, content []byte) (next string, err error) {
	var top map[string]any
	if err := yaml.Unmarshal(content, &top); err != nil { // JSON is valid YAML
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	var f Settings
	said := flat(top)
	for _, k := range slices.Sorted(maps.Keys(said)) {
		f.flag(plain(k), said[k], name)
	}
	if z, ok := top["zero_optimization"].(map[string]any); ok {
		if v, ok := stages[fmt.Sprint(z["stage"])]; ok {
			f.Sharding = Said{v, name}
		}
	}
	switch strings.ToLower(fmt.Sprint(top["distributed_type"])) {
	case "fsdp":
		if f.Sharding.Value == "" {
			f.Sharding = Said{FSDP, name}
		}
	case "deepspeed":
		d, _ := top["deepspeed_config"].(map[string]any)
		next, _ = d["deepspeed_config_file"].(string)
		if v, ok := stages[fmt.Sprint(d["zero_stage"])]; ok {
			f.Sharding = Said{v, name}
		}
	case "multi_gpu", "no":
		f.Sharding = Said{None, name}
	}
	for _, x := range []struct{ to, from *Said }{{&s.Sharding, &f.Sharding}, {&s.Tensor, &f.Tensor},
		{&s.Pipeline, &f.Pipeline}, {&s.Recompute, &f.Recompute}} {
		if x.to.Value == "" {
			*x.to = *x.from
		}
	}
	return next, nil
}

// flat returns the settings of a file as flags, including accelerate's fsdp_config and DeepSpeed's tensor_parallel.
func flat(top map[string]any) map[string]string {
	all := map[string]string{}
	for _, group := range []string{"fsdp_config", "tensor_parallel"} {
		m, _ := top[group].(map[string]any)
		for k, v := range m {
			switch v := v.(type) {
			case string:
				all[k] = v
			case bool:
				all[k] = strconv.FormatBool(v)
			case int:
				all[k] = strconv.Itoa(v)
			}
		}
	}
	return all
}
