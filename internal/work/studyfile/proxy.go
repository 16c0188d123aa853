package studyfile

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/work/study"
)

// proxy reads the cheaper training on which the study searches.
func (r *reader) proxy(v *yaml.Node) {
	p := &study.Proxy{Promote: 1}
	r.each(v, "proxy", func(name string, key, v *yaml.Node) {
		switch field := "proxy." + name; name {
		case "set":
			p.Set = r.settings(v, field, func(v *yaml.Node, field string) string {
				var x any
				text, err := []byte(nil), v.Decode(&x)
				if err == nil {
					text, err = json.Marshal(x)
				}
				if err != nil || x == nil {
					r.wrong(v, field, "is no value that a program can be given", "write a number, a word, true or false")
				}
				return string(text)
			})
		case "env":
			p.Env = r.settings(v, field, func(v *yaml.Node, field string) string {
				if v.Kind != yaml.ScalarNode || v.Tag == "!!null" {
					r.wrong(v, field, "is no text", "write one")
				}
				return v.Value
			})
		case "max":
			p.Max = r.positive(v, field)
		case "promote":
			p.Promote = r.whole(v, field, 1, study.MaxPromote)
		case "reserve":
			p.Reserve = r.part(v, field, study.LeastReserve, study.MostReserve)
		default:
			r.wrong(key, field, "is no field of a proxy", "write set, env, max, promote or reserve")
		}
	})
	r.f.Study.Proxy = p
}

// settings reads names with values.
func (r *reader) settings(v *yaml.Node, field string, read func(v *yaml.Node, field string) string) map[string]string {
	list := map[string]string{}
	r.each(v, field, func(name string, _, v *yaml.Node) { list[name] = read(v, field+"."+name) })
	return list
}

// part reads a part of a whole, such as 0.5 or 50%.
func (r *reader) part(v *yaml.Node, field string, least, most float64) float64 {
	text, percent := strings.CutSuffix(v.Value, "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if percent {
		x /= 100
	}
	if v.Kind != yaml.ScalarNode || err != nil || !(x >= least && x <= most) {
		r.wrong(v, field, fmt.Sprintf("is %.40q", v.Value), fmt.Sprintf("write the part of the budget for full trainings, "+
			"from %g to %g, or %g%% to %g%%", least, most, 100*least, 100*most))
		return least
	}
	return x
}
