package study

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// unquoted formats a JSON value for a flag: text without its quotes.
func unquoted(value string) string {
	var text string
	if json.Unmarshal([]byte(value), &text) == nil {
		return text
	}
	return value
}

// A Value is a parameter's value for a program.
type Value struct {
	Name string
	Text string // as a flag has it
	JSON string
}

// Values are the parameters' values of one trial.
type Values []Value

// Values returns the values of a configuration, in parameter order. A trial of the proxy has the proxy's settings
// instead, and those that are no parameters at the end, by name.
func (s *Spec) Values(texts []string, promoted bool) (list Values) {
	set := map[string]string{}
	if s.Proxy != nil && !promoted {
		set = s.Proxy.Set
	}
	for d, p := range s.Params {
		v := Value{p.Name, texts[d], texts[d]}
		for _, of := range p.Values {
			if unquoted(of) == texts[d] {
				v.JSON = of
			}
		}
		if by, is := set[p.Name]; is {
			v.Text, v.JSON = unquoted(by), by
		}
		list = append(list, v)
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if !slices.ContainsFunc(s.Params, func(p Param) bool { return p.Name == name }) {
			list = append(list, Value{name, unquoted(set[name]), set[name]})
		}
	}
	return list
}

// Env returns the variables that pass the values to a program.
func (l Values) Env() map[string]string {
	env := map[string]string{"SCRIMP_PARAMS": l.JSON()}
	for _, v := range l {
		env["SCRIMP_PARAM_"+envName(v.Name)] = v.Text
	}
	return env
}

// JSON formats the values as an object, in their order.
func (l Values) JSON() string {
	var b strings.Builder
	b.WriteByte('{')
	for d, v := range l {
		if d > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(v.Name)
		b.Write(name)
		b.WriteByte(':')
		b.WriteString(v.JSON)
	}
	b.WriteByte('}')
	return b.String()
}

// JSON formats the configuration as an object, in parameter order.
func (s *Spec) JSON(texts []string) string { return s.Values(texts, true).JSON() }

// flags formats the values as flags: --lr=0.01, or lr=0.01 without hyphens.
func (l Values) flags(hyphens string) []string {
	list := make([]string, len(l))
	for d, v := range l {
		list[d] = hyphens + v.Name + "=" + v.Text
	}
	return list
}

// Command inserts the values into a command: in place of ${args}, ${args_no_hyphens}, ${args_json} and
// ${NAME}, or as trailing flags if the command names none of these and no variable with the values. For a shell, values
// are quoted.
func (l Values) Command(command string, args []string) (string, []string) {
	if len(args) > 0 {
		return command, l.inArgs(args)
	}
	named := false
	put := func(mark, by string) {
		if strings.Contains(command, mark) {
			named, command = true, strings.ReplaceAll(command, mark, by)
		}
	}
	put("${args}", quotedAll(l.flags("--")))
	put("${args_no_hyphens}", quotedAll(l.flags("")))
	put("${args_json}", quoted(l.JSON()))
	for _, v := range l {
		put("${"+v.Name+"}", quoted(v.Text))
	}
	if !named && !strings.Contains(command, "SCRIMP_PARAM") {
		command = strings.TrimRight(command, " \t\r\n") + " " + quotedAll(l.flags("--"))
	}
	return command, args
}

func (l Values) inArgs(args []string) (list []string) {
	named := false
	for _, a := range args {
		switch a {
		case "${args}":
			named, list = true, append(list, l.flags("--")...)
			continue
		case "${args_no_hyphens}":
			named, list = true, append(list, l.flags("")...)
			continue
		}
		was := a
		a = strings.ReplaceAll(a, "${args_json}", l.JSON())
		for _, v := range l {
			a = strings.ReplaceAll(a, "${"+v.Name+"}", v.Text)
		}
		named = named || a != was
		list = append(list, a)
	}
	if !named {
		list = append(list, l.flags("--")...)
	}
	return list
}

func quotedAll(list []string) string {
	for i, v := range list {
		list[i] = quoted(v)
	}
	return strings.Join(list, " ")
}

// quoted quotes a text for a shell if necessary.
func quoted(text string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_=./:,+@%", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
