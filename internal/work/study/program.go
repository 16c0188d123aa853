package study

import (
	"encoding/json"
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

// Env returns the variables that pass the parameters' values to a program.
func (s *Spec) Env(texts []string) map[string]string {
	env := map[string]string{"SCRIMP_PARAMS": s.JSON(texts)}
	for d := range s.Params {
		env["SCRIMP_PARAM_"+envName(s.Params[d].Name)] = texts[d]
	}
	return env
}

// JSON formats the configuration as an object, in parameter order.
func (s *Spec) JSON(texts []string) string {
	var b strings.Builder
	b.WriteByte('{')
	for d, p := range s.Params {
		if d > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(p.Name)
		value := texts[d]
		for _, v := range p.Values {
			if unquoted(v) == texts[d] {
				value = v
			}
		}
		b.Write(name)
		b.WriteByte(':')
		b.WriteString(value)
	}
	b.WriteByte('}')
	return b.String()
}

// flags formats the values as flags: --lr=0.01, or lr=0.01 without hyphens.
func (s *Spec) flags(texts []string, hyphens string) []string {
	list := make([]string, len(s.Params))
	for d := range s.Params {
		list[d] = hyphens + s.Params[d].Name + "=" + texts[d]
	}
	return list
}

// Command inserts the parameters' values into a command: in place of ${args}, ${args_no_hyphens}, ${args_json} and
// ${NAME}, or as trailing flags if the command names none of these and no variable with the values. For a shell, values
// are quoted.
func (s *Spec) Command(command string, args []string, texts []string) (string, []string) {
	if len(args) > 0 {
		return command, s.inArgs(args, texts)
	}
	named := false
	put := func(mark, by string) {
		if strings.Contains(command, mark) {
			named, command = true, strings.ReplaceAll(command, mark, by)
		}
	}
	put("${args}", quotedAll(s.flags(texts, "--")))
	put("${args_no_hyphens}", quotedAll(s.flags(texts, "")))
	put("${args_json}", quoted(s.JSON(texts)))
	for d := range s.Params {
		put("${"+s.Params[d].Name+"}", quoted(texts[d]))
	}
	if !named && !strings.Contains(command, "SCRIMP_PARAM") {
		command = strings.TrimRight(command, " \t\r\n") + " " + quotedAll(s.flags(texts, "--"))
	}
	return command, args
}

func (s *Spec) inArgs(args, texts []string) (list []string) {
	named := false
	for _, a := range args {
		switch a {
		case "${args}":
			named, list = true, append(list, s.flags(texts, "--")...)
			continue
		case "${args_no_hyphens}":
			named, list = true, append(list, s.flags(texts, "")...)
			continue
		}
		was := a
		a = strings.ReplaceAll(a, "${args_json}", s.JSON(texts))
		for d := range s.Params {
			a = strings.ReplaceAll(a, "${"+s.Params[d].Name+"}", texts[d])
		}
		named = named || a != was
		list = append(list, a)
	}
	if !named {
		list = append(list, s.flags(texts, "--")...)
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
