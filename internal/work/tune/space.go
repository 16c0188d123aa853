package tune

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a space.
const (
	MaxParams  = 200
	MaxChoices = 1_000
	MaxSpace   = 4 << 20 // bytes of a file
	maxNumber  = 1e300
)

// A Type is the type of a parameter's values.
type Type string

// The types of parameters.
const (
	Float       Type = "float"
	Int         Type = "int"
	Categorical Type = "cat"
)

// A Param is one hyper-parameter.
type Param struct {
	Name    string
	Type    Type
	Low     float64
	High    float64
	Log     bool // its effect depends on the logarithm
	Choices []string
}

// A Value is a parameter's value: a number, or the index of a choice.
type Value = float64

// A Space holds the parameters of a search, and the user's default values, if there are any.
type Space struct {
	Params  []Param
	Default []Value
}

// jsonParam is a parameter in space.json.
type jsonParam struct {
	Name    string   `json:"name"`
	Type    Type     `json:"type"`
	Low     *float64 `json:"low"`
	High    *float64 `json:"high"`
	Log     bool     `json:"log"`
	Choices []any    `json:"choices"`
}

// A Task is the contents of space.json: the space, and the budget of a search in it.
type Task struct {
	Table         string         `json:"table"`
	Metric        string         `json:"metric"`
	Goal          string         `json:"goal"`
	MaxEpoch      int            `json:"max_epoch"`
	PriceUSD      float64        `json:"price_usd_per_worker_hour"`
	SwitchSeconds float64        `json:"switch_seconds"`
	BudgetSeconds float64        `json:"budget_seconds"`
	Default       map[string]any `json:"default"`
	Params        []jsonParam    `json:"params"`
	Space         Space          `json:"-"`
}

// ReadTask reads space.json. Errors begin with the given name.
func ReadTask(r io.Reader, name string) (*Task, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxSpace+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > MaxSpace {
		return nil, fmt.Errorf("%s is larger than %d MiB", name, MaxSpace>>20)
	}
	var t Task
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, lineOf(text, err), err)
	}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &t, nil
}

// lineOf returns the line of an error in JSON.
func lineOf(text []byte, err error) int {
	at := int64(0)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = syntax.Offset
	} else if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at = wrong.Offset
	}
	return 1 + strings.Count(string(text[:min(at, int64(len(text)))]), "\n")
}

func (t *Task) check() error {
	switch {
	case t.Goal != "" && t.Goal != "minimise" && t.Goal != "minimize":
		return fmt.Errorf("goal is %q: a table has goal minimise; write the metric with its sign turned", t.Goal)
	case t.MaxEpoch < 1 || t.MaxEpoch > 100_000:
		return fmt.Errorf("max_epoch is %d: give 1 to 100000", t.MaxEpoch)
	case !(t.BudgetSeconds > 0 && t.BudgetSeconds <= 1e12):
		return fmt.Errorf("budget_seconds is %g: give more than 0, at most 1e12", t.BudgetSeconds)
	case !(t.SwitchSeconds >= 0 && t.SwitchSeconds <= 1e9):
		return fmt.Errorf("switch_seconds is %g: give 0 to 1e9", t.SwitchSeconds)
	case !(t.PriceUSD >= 0 && t.PriceUSD <= 1e6):
		return fmt.Errorf("price_usd_per_worker_hour is %g: give 0 to 1e6", t.PriceUSD)
	}
	if err := t.params(); err != nil {
		return err
	}
	return t.defaults()
}

// params reads the parameters into the space.
func (t *Task) params() error {
	switch {
	case len(t.Params) == 0:
		return errors.New("params is empty: give one parameter at least")
	case len(t.Params) > MaxParams:
		return fmt.Errorf("params has %d parameters: give %d at most", len(t.Params), MaxParams)
	}
	for i, p := range t.Params {
		q, err := p.param()
		if err != nil {
			return fmt.Errorf("params[%d] (%s): %w", i, p.Name, err)
		}
		if slices.ContainsFunc(t.Space.Params, func(o Param) bool { return o.Name == q.Name }) {
			return fmt.Errorf("params[%d] (%s): another parameter has that name", i, p.Name)
		}
		t.Space.Params = append(t.Space.Params, q)
	}
	return nil
}

// defaults reads the values of the field default, if present.
func (t *Task) defaults() error {
	if len(t.Default) == 0 {
		return nil
	}
	for _, p := range t.Space.Params {
		said, ok := t.Default[p.Name]
		if !ok {
			return fmt.Errorf("default has no %s: give a value of each parameter, or null", p.Name)
		}
		v, err := p.Read(text(said))
		if err != nil {
			return fmt.Errorf("default.%s: %w", p.Name, err)
		}
		t.Space.Default = append(t.Space.Default, v)
	}
	return nil
}

// param checks a parameter.
func (p jsonParam) param() (Param, error) {
	q := Param{Name: p.Name, Type: p.Type, Log: p.Log}
	if p.Name == "" || p.Name == "config_id" || len(p.Name) > 200 {
		return q, errors.New("give a name of 1 to 200 characters other than config_id")
	}
	switch p.Type {
	case Categorical:
		err := q.choose(p.Choices)
		return q, err
	case Float, Int:
	default:
		return q, fmt.Errorf("type is %q: give float, int or cat", p.Type)
	}
	if p.Low == nil || p.High == nil {
		return q, errors.New("give low and high")
	}
	q.Low, q.High = *p.Low, *p.High
	switch {
	case math.Abs(q.Low) > maxNumber || math.Abs(q.High) > maxNumber:
		return q, fmt.Errorf("low and high lie between -%g and %g", maxNumber, maxNumber)
	case q.Low > q.High:
		return q, fmt.Errorf("low %g is above high %g: swap them", q.Low, q.High)
	case q.Log && q.Low <= 0:
		return q, fmt.Errorf("log needs low above 0, and it is %g", q.Low)
	}
	return q, nil
}

// choose takes the values that a categorical parameter chooses from.
func (p *Param) choose(choices []any) error {
	if len(choices) == 0 || len(choices) > MaxChoices {
		return fmt.Errorf("choices has %d values: give 1 to %d", len(choices), MaxChoices)
	}
	for _, c := range choices {
		if slices.Contains(p.Choices, text(c)) {
			return fmt.Errorf("choices has %q twice", text(c))
		}
		p.Choices = append(p.Choices, text(c))
	}
	return nil
}

// text returns a JSON value as a table writes it.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// Read parses a value. Values beyond low and high are accepted, because a table may have rounded them.
func (p *Param) Read(s string) (Value, error) {
	s = strings.TrimSpace(s)
	if p.Type == Categorical {
		if i := slices.Index(p.Choices, s); i >= 0 {
			return float64(i), nil
		}
		for i, c := range p.Choices {
			if strings.EqualFold(c, s) || sameNumber(c, s) {
				return float64(i), nil
			}
		}
		return 0, fmt.Errorf("%q is not one of the choices %s", s, strings.Join(p.Choices[:min(len(p.Choices), 20)], ", "))
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.Abs(v) > maxNumber {
		return 0, fmt.Errorf("%q is not a number between -%g and %g", s, maxNumber, maxNumber)
	}
	if p.Log && v <= 0 {
		return 0, fmt.Errorf("%s is not above 0, and the parameter has log: correct the value, or set log to false", s)
	}
	return v, nil
}

func sameNumber(a, b string) bool {
	x, errA := strconv.ParseFloat(a, 64)
	y, errB := strconv.ParseFloat(b, 64)
	return errA == nil && errB == nil && x == y
}

// Ordered returns the choices as numbers, or false if they are not numbers. Widths of 16, 24 and 32 have an order, and
// what is learned of one is more useful for its neighbour.
func (p *Param) Ordered() ([]float64, bool) {
	list := make([]float64, len(p.Choices))
	for i, c := range p.Choices {
		v, err := strconv.ParseFloat(c, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, false
		}
		list[i] = v
	}
	return list, len(list) > 2
}
