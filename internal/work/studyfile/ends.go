package studyfile

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/work/study"
)

// plateau reads when the search ends by itself.
func (r *reader) plateau(v *yaml.Node) {
	p := &study.Plateau{}
	r.each(v, "plateau", func(name string, key, v *yaml.Node) {
		switch field := "plateau." + name; name {
		case "patience":
			p.Patience = r.whole(v, field, 1, study.MaxPatience)
		case "min_gain_per_usd":
			p.MinGain = r.positive(v, field)
		case "point_value":
			p.PointValue = r.positive(&yaml.Node{Kind: v.Kind, Tag: "!!float", Value: strings.TrimPrefix(v.Value, "$"),
				Line: v.Line, Column: v.Column}, field)
		default:
			r.wrong(key, field, "is no field of a plateau", "write patience and min_gain_per_usd, or patience and point_value")
		}
	})
	r.f.Study.Plateau = p
}

// positive reads a number above zero.
func (r *reader) positive(v *yaml.Node, field string) float64 {
	n := len(r.problems)
	x := r.number(v, field)
	if x <= 0 && n == len(r.problems) {
		r.wrong(v, field, fmt.Sprintf("is %.40q", v.Value), "write a number above zero")
	}
	return x
}

// maxWarm bounds the earlier studies and files.
const maxWarm = 20

// warmStart reads the names of earlier studies and of CSV files.
func (r *reader) warmStart(v *yaml.Node) {
	list := []*yaml.Node{v}
	if v.Kind == yaml.SequenceNode {
		list = v.Content
	}
	if len(list) == 0 || len(list) > maxWarm {
		r.wrong(v, "warm_start", fmt.Sprintf("has %d entries", len(list)), fmt.Sprintf("write 1 to %d names of studies or "+
			"CSV files", maxWarm))
		return
	}
	for _, v := range list {
		name := r.text(v, "warm_start")
		if slices.Contains(r.f.Warm, name) {
			r.wrong(v, "warm_start", fmt.Sprintf("names %.40q twice", name), "leave one out")
		}
		r.f.Warm = append(r.f.Warm, name)
	}
}
