package studyfile

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/work/study"
)

// parameters reads the space.
func (r *reader) parameters(v *yaml.Node) {
	r.each(v, "parameters", func(name string, _, v *yaml.Node) {
		if p, ok := r.parameter(v, "parameters."+name); ok {
			p.Name = name
			r.f.Study.Params = append(r.f.Study.Params, p)
		}
	})
}

// form holds a parameter's fields as written in the file.
type form struct {
	distribution  string
	value         *yaml.Node
	values        *yaml.Node
	min, max      *yaml.Node
	q, mu, sigma  *yaml.Node
	log           bool
	place         *yaml.Node
	distributions *yaml.Node
}

// parameter reads a parameter with the fields of W&B, Optuna or Ray.
func (r *reader) parameter(v *yaml.Node, field string) (p study.Param, ok bool) {
	if v.Kind == yaml.ScalarNode || v.Kind == yaml.SequenceNode {
		r.wrong(v, field, "does not say what it may be", "write value, values, or min and max below it")
		return p, false
	}
	known, f := len(r.problems), form{place: v}
	r.each(v, field, func(name string, key, v *yaml.Node) {
		switch name {
		case "value":
			f.value = v
		case "values", "choices", "categories":
			f.values = v
		case "min", "low", "lower":
			f.min = v
		case "max", "high", "upper":
			f.max = v
		case "q", "step":
			f.q = v
		case "mu", "mean":
			f.mu = v
		case "sigma", "sd":
			f.sigma = v
		case "log":
			if err := v.Decode(&f.log); err != nil {
				r.wrong(v, field+".log", "is neither true nor false", "write true or false")
			}
		case "distribution", "type":
			f.distribution, f.distributions = strings.ToLower(r.text(v, field+".distribution")), v
		case "parameters":
			r.wrong(key, field+"."+name, "holds nested parameters, which no command line has",
				"write each at the top, with a name of its own, such as "+field[len("parameters."):]+"_lr")
		default:
			r.wrong(key, field+"."+name, "is not supported yet", "write value, values, distribution, min, max, q, mu or sigma")
		}
	})
	if len(r.problems) > known {
		return p, false // of a field: what its absence means would only mislead
	}
	p = r.distributed(f, field)
	return p, len(r.problems) == known
}

// shape describes a distribution.
type shape struct {
	list, whole, log, normal, quantised bool
	exponents                           bool // min and max are natural logarithms
	inverse                             bool // of the reciprocal of a value
	open                                bool // excludes the upper bound
}

// shapes maps the names of distributions in W&B, Optuna and Ray.
var shapes = map[string]shape{
	"constant": {list: true}, "categorical": {list: true}, "choice": {list: true}, "grid_search": {list: true},
	"categoricaldistribution": {list: true},
	"uniform":                 {}, "float": {}, "floatdistribution": {}, "suggest_float": {},
	"int_uniform": {whole: true}, "int": {whole: true}, "intdistribution": {whole: true}, "suggest_int": {whole: true},
	"randint": {whole: true, open: true}, "lograndint": {whole: true, open: true, log: true},
	"q_uniform": {quantised: true}, "quniform": {quantised: true},
	"log_uniform": {log: true, exponents: true}, "log_uniform_values": {log: true}, "loguniform": {log: true},
	"q_log_uniform": {log: true, exponents: true, quantised: true}, "q_log_uniform_values": {log: true, quantised: true},
	"qloguniform": {log: true, quantised: true},
	// The logarithm of a reciprocal is uniform where that of the value is.
	"inv_log_uniform_values": {log: true}, "inv_log_uniform": {log: true, exponents: true, inverse: true},
	"normal": {normal: true}, "randn": {normal: true}, "q_normal": {normal: true, quantised: true},
	"qrandn": {normal: true, quantised: true}, "log_normal": {normal: true, log: true},
	"q_log_normal": {normal: true, log: true, quantised: true},
}

// contradicts refuses a parameter that is both a list of values and a range.
func (r *reader) contradicts(f form, field string) {
	if f.value != nil && f.values != nil {
		r.wrong(f.values, field+".values", "stands beside value", "leave one of them out")
	}
	if f.value == nil && f.values == nil {
		return
	}
	for _, o := range []struct {
		name string
		v    *yaml.Node
	}{{"min", f.min}, {"max", f.max}, {"q", f.q}, {"mu", f.mu}, {"sigma", f.sigma}} {
		if o.v != nil {
			r.wrong(o.v, field+"."+o.name, "stands beside a list of values", "write the values, or a range")
			return
		}
	}
}

// distributed converts a form to a parameter.
func (r *reader) distributed(f form, field string) (p study.Param) {
	r.contradicts(f, field)
	name := f.distributionName()
	s, known := shapes[name]
	if !known {
		r.wrong(f.distributions, field+".distribution", fmt.Sprintf("%.40q is not supported yet", name),
			"write uniform, log_uniform_values, int_uniform, q_uniform, normal, log_normal, categorical or constant")
		return p
	}
	if s.list {
		p.Values = r.list(f, field)
		return p
	}
	s.log = s.log || f.log
	p.Log, p.Int = s.log, s.whole
	if f.q != nil {
		p.Q = r.positive(f.q, field+".q")
	} else if s.quantised {
		p.Q = 1
	}
	if s.normal {
		r.normal(&p, f, field)
	} else {
		r.interval(&p, s, f, field, name)
	}
	return p
}

// distributionName returns the distribution that the form names, or the one that its other fields imply.
func (f *form) distributionName() string {
	switch {
	case f.distribution != "":
		return f.distribution
	case f.value != nil, f.values != nil:
		return "categorical"
	case f.sigma != nil:
		return "normal"
	case isWhole(f.min) && isWhole(f.max):
		return "int_uniform"
	}
	return "uniform"
}

// normal reads mu, by default 0, and sigma, by default 1.
func (r *reader) normal(p *study.Param, f form, field string) {
	p.Sigma = 1
	if f.sigma != nil {
		p.Sigma = r.positive(f.sigma, field+".sigma")
	}
	if f.mu != nil {
		p.Mu = r.number(f.mu, field+".mu")
	}
}

// interval reads min and max, which the named distribution needs.
func (r *reader) interval(p *study.Param, s shape, f form, field, name string) {
	need := func(v *yaml.Node, what string) float64 {
		if v == nil {
			r.wrong(f.place, field+"."+what, "is missing, and "+name+" needs it", "write it")
			return 0
		}
		return r.number(v, field+"."+what)
	}
	p.Min, p.Max = need(f.min, "min"), need(f.max, "max")
	if s.open {
		p.Max--
	}
	if s.inverse {
		p.Min, p.Max = -p.Max, -p.Min
	}
	if s.exponents {
		p.Min, p.Max = math.Exp(p.Min), math.Exp(p.Max)
		if p.Max > 1e15 || p.Min == 0 {
			r.wrong(f.place, field, "takes min and max as natural logarithms, and they are too large",
				"write distribution: log_uniform_values, which takes the values themselves")
		}
	}
	if p.Log && p.Min <= 0 {
		r.wrong(f.min, field+".min", fmt.Sprintf("is %g, and a distribution of logarithms needs more than 0", p.Min),
			"write a min above 0")
	}
	if p.Min > p.Max {
		r.wrong(f.min, field+".min", fmt.Sprintf("%g is above max %g", p.Min, p.Max), "swap them")
	}
}

func isWhole(v *yaml.Node) bool { return v != nil && v.Tag == "!!int" }

// list reads the values of a parameter as JSON.
func (r *reader) list(f form, field string) (list []string) {
	nodes := []*yaml.Node{f.value}
	if f.value == nil {
		if f.values == nil || f.values.Kind != yaml.SequenceNode || len(f.values.Content) == 0 {
			r.wrong(f.place, field+".values", "is no list of values", "write values: [a, b]")
			return nil
		}
		nodes = f.values.Content
	}
	for _, n := range nodes {
		var v any
		text, err := []byte(nil), n.Decode(&v)
		if err == nil {
			text, err = json.Marshal(v)
		}
		if err != nil || v == nil {
			r.wrong(n, field+".values", "has a value that no program can be given", "write numbers, words, true or false")
			return nil
		}
		list = append(list, string(text))
	}
	return list
}
