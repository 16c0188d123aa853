package spec

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// With returns a job file with a field set, such as resources.accelerator or env.NAME. The value is YAML, as after the
// field in the file. With creates missing maps on the path. The caller parses the result to check it.
func With(text []byte, field, value string) ([]byte, error) {
	root, problem := document(text)
	if problem != nil {
		return nil, Problems{*problem}
	}
	v := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.SingleQuotedStyle}
	if strings.TrimSpace(value) != "" {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(value), &doc); err != nil || len(doc.Content) != 1 {
			return nil, fmt.Errorf("`%s`: %q is no value that a job file could have behind the field", field, value)
		}
		v = doc.Content[0]
	}
	path := strings.Split(field, ".")
	if slices.Contains(path, "") {
		return nil, fmt.Errorf("%q is not a field: write one such as env.NAME or resources.accelerator", field)
	}
	at := root
	for i, name := range path {
		if at.Kind == yaml.AliasNode {
			return nil, fmt.Errorf("`%s` is an alias of another place: write it out in the job file",
				strings.Join(path[:i], "."))
		}
		if at.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("`%s` is not a map of fields in the job file, so it has no %s",
				strings.Join(path[:i], "."), name)
		}
		next := v
		if i+1 < len(path) {
			next = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		}
		k := 0
		for k < len(at.Content) && at.Content[k].Value != name {
			k += 2
		}
		if k == len(at.Content) {
			at.Content = append(at.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, next)
		} else if i+1 == len(path) {
			at.Content[k+1] = v
		}
		at = at.Content[k+1]
	}
	return yaml.Marshal(root)
}
