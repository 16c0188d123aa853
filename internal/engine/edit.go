package engine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/lib/durable"
)

// entry is a setting as AddSetting writes it, without the fields that have defaults.
type entry struct {
	Name   string `yaml:"name"`
	Kind   string `yaml:"kind"`
	Agents string `yaml:"agents,omitempty"`
	With   With   `yaml:"with,omitempty"`
}

// AddSetting adds an engine to the data folder's file and keeps the rest, including comments. If
// there is no file, it also adds the local market, which a folder without a file has by default.
func AddSetting(dir string, s *Setting) error {
	if !named.MatchString(s.Name) {
		return fmt.Errorf("engine %q: %s", s.Name, nameRule)
	}
	return edit(dir, func(list *yaml.Node) error {
		if indexOf(list, s.Name) >= 0 {
			return fmt.Errorf("engine %s exists already: choose another name, change it in %s, or remove it first: "+
				"scrimp engine rm %s", s.Name, SettingsName, s.Name)
		}
		var n yaml.Node
		if err := n.Encode(entry{s.Name, s.Kind, s.Agents, s.With}); err != nil {
			return err
		}
		list.Content = append(list.Content, &n)
		return nil
	})
}

// RemoveSetting removes an engine from the data folder's file.
func RemoveSetting(dir, name string) error {
	return edit(dir, func(list *yaml.Node) error {
		n := indexOf(list, name)
		switch {
		case n < 0:
			return fmt.Errorf("engine %s is not known: scrimp engine list shows those that are", name)
		case len(list.Content) == 1:
			return fmt.Errorf("engine %s is the only one: add another one first", name)
		}
		list.Content = slices.Delete(list.Content, n, n+1)
		return nil
	})
}

// indexOf returns the index of an engine in the list, or -1.
func indexOf(list *yaml.Node, name string) int {
	return slices.IndexFunc(list.Content, func(e *yaml.Node) bool {
		var s struct{ Name string }
		return e.Decode(&s) == nil && s.Name == name
	})
}

// edit changes the list of engines in the data folder's file, and checks that the result is valid.
func edit(dir string, change func(list *yaml.Node) error) error {
	if file := linkedTo(dir); file != "" {
		return fmt.Errorf("the engines are in %s, as scrimp serve --engines says: change them there, and start the server "+
			"anew", file)
	}
	path := filepath.Join(dir, SettingsName)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		text, err = []byte("# The engines that machines are rented from. A change takes effect when the server restarts.\n"+
			"engines:\n  - name: local\n    kind: local\n"), nil
	} else if err == nil {
		_, err = Settings(dir)
	}
	if err != nil {
		return err
	}
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	root := file.Content[0]
	n := slices.IndexFunc(root.Content, func(k *yaml.Node) bool { return k.Value == "engines" })
	if n < 0 || n+1 >= len(root.Content) || root.Content[n+1].Kind != yaml.SequenceNode {
		return fmt.Errorf("%s: it has no list named engines", path)
	}
	list := root.Content[n+1]
	if err := change(list); err != nil {
		return err
	}
	list.Style = 0 // otherwise a list on one line would put its new entry there too
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(&file); err != nil {
		return err
	}
	if _, err := readSettings(path, out.Bytes()); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return durable.Replace(path, out.Bytes())
}
