package study

import (
	"encoding/json"
	"strings"
)

// unquoted is a JSON value as a flag has it: text without its quotes.
func unquoted(value string) string {
	var text string
	if json.Unmarshal([]byte(value), &text) == nil {
		return text
	}
	return value
}

// Env are the variables by which a program learns the values of its parameters.
func (s *Spec) Env(texts []string) map[string]string {
	env := map[string]string{"SCRIMP_PARAMS": s.JSON(texts)}
	for d := range s.Params {
		env["SCRIMP_PARAM_"+envName(s.Params[d].Name)] = texts[d]
	}
	return env
}

// JSON is the configuration as an object, in the order of the parameters.
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

// flags are the values as flags: --lr=0.01, or lr=0.01 with no hyphens.
func (s *Spec) flags(texts []string, hyphens string) []string {
	list := make([]string, len(s.Params))
	for d := range s.Params {
		list[d] = hyphens + s.Params[d].Name + "=" + texts[d]
	}
	return list
}

// Command is a command with the values of the parameters: in the place of ${args}, ${args_no_hyphens}, ${args_json} and
// ${NAME}, or as flags behind it where it names none of them and no variable that has them. In a command for a shell,
// values are quoted.
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

// quoted is a text as a shell reads it, without quotes where it needs none.
func quoted(text string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_=./:,+@%", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
