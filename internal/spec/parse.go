package spec

import (
	"encoding"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"scrimp/internal/money"
	"scrimp/internal/size"
)

// Problem is one thing that is wrong with a job file.
type Problem struct {
	File  string `json:"file"`
	Line  int    `json:"line"` // 0: nowhere in particular
	Field string `json:"field,omitempty"`
	Cause string `json:"cause"`
	Mend  string `json:"mend,omitempty"`
}

func (p Problem) String() string {
	at := p.File
	if p.Line > 0 {
		at += ":" + strconv.Itoa(p.Line)
	}
	text := at + ": "
	if p.Field != "" {
		text += "`" + p.Field + "` "
	}
	text += p.Cause
	if p.Mend != "" {
		text += ": " + p.Mend
	}
	return text
}

// Problems are all that is wrong with a job file.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// Note is something the user should know about a job file that is not wrong.
type Note struct {
	Field string `json:"field"`
	Text  string `json:"text"`
}

// Parse reads a job file. name is what the job is called where the file does
// not say, now is the market time against which the deadline is held. All that
// is wrong is returned together, as Problems.
func Parse(file string, text []byte, name string, now time.Time) (Job, []Note, error) {
	r := reader{file: path.Base(file), lines: map[string]int{}}
	var doc yaml.Node
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	if err := d.Decode(&doc); err != nil || len(doc.Content) == 0 {
		cause := "holds no job"
		if err != nil && err.Error() != "EOF" {
			cause = "is not YAML (" + strings.TrimPrefix(err.Error(), "yaml: ") + ")"
		}
		return Job{}, nil, Problems{{File: r.file, Cause: cause, Mend: "scrimp init writes a first one"}}
	}
	var second yaml.Node
	if err := d.Decode(&second); err == nil {
		return Job{}, nil, Problems{{File: r.file, Line: second.Line, Cause: "holds several documents", Mend: "keep one job a file"}}
	}
	var j Job
	r.value(doc.Content[0], reflect.ValueOf(&j).Elem(), "", "")
	if j.Name == "" {
		j.Name = Label(name)
	}
	r.check(j, now)
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b Problem) int { return a.Line - b.Line })
		return j, nil, r.problems
	}
	return j, notes(j), nil
}

// Label makes a name of letters, digits and dashes from any text.
func Label(s string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(s) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	label := strings.Trim(b.String(), "-")
	if len(label) > 40 {
		label = strings.Trim(label[:40], "-")
	}
	if label == "" {
		return "job"
	}
	return label
}

// reader turns nodes into values and remembers where each field stands.
type reader struct {
	file     string
	problems Problems
	lines    map[string]int
}

func (r *reader) wrong(line int, field, cause, mend string) {
	r.problems = append(r.problems, Problem{r.file, line, field, cause, mend})
}

var (
	amountType = reflect.TypeFor[money.Amount]()
	rateType   = reflect.TypeFor[money.Rate]()
	bytesType  = reflect.TypeFor[size.Bytes]()
	budgetType = reflect.TypeFor[Budget]()
	textType   = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// value reads node n into v; field is its path, doc what the field is for.
func (r *reader) value(n *yaml.Node, v reflect.Value, field, doc string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if field != "" {
		r.lines[field] = n.Line
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		r.value(n, v.Elem(), field, doc)
		return
	}
	bad := func(cause string) { r.wrong(n.Line, field, cause, doc) }
	switch {
	case v.Type() == budgetType && n.Kind == yaml.ScalarNode: // budget: $4.00
		r.value(n, v.FieldByName("Dollars"), field, doc)
	case v.Type() == amountType || v.Type() == rateType:
		text := strings.TrimPrefix(strings.ReplaceAll(n.Value, ",", ""), "$")
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil || n.Kind != yaml.ScalarNode {
			bad(fmt.Sprintf("is %q, not an amount such as $4.00", n.Value))
		}
	case v.Type() == bytesType:
		b, err := size.Parse(n.Value)
		if err != nil {
			bad("is " + err.Error())
		}
		v.SetInt(int64(b))
	case v.Addr().Type().Implements(textType):
		if n.Kind != yaml.ScalarNode {
			bad("is a list or a map, not a single value")
		} else if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
			bad("is wrong (" + err.Error() + ")")
		}
	case v.Kind() == reflect.Struct:
		r.fields(n, v, field)
	case v.Kind() == reflect.Map:
		r.entries(n, v, field, doc)
	case v.Kind() == reflect.Slice:
		items := n.Content
		if n.Kind == yaml.ScalarNode { // one value is a list of one
			items = []*yaml.Node{n}
		} else if n.Kind != yaml.SequenceNode {
			bad("is a map, not a list")
			return
		}
		list := reflect.MakeSlice(v.Type(), len(items), len(items))
		for i, item := range items {
			r.value(item, list.Index(i), fmt.Sprintf("%s[%d]", field, i), doc)
		}
		v.Set(list)
	case n.Kind != yaml.ScalarNode:
		bad("is a list or a map, not a single value")
	case n.Tag == "!!null":
	default:
		r.scalar(n, v, bad)
	}
}

func (r *reader) scalar(n *yaml.Node, v reflect.Value, bad func(string)) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
	case reflect.Bool:
		b, err := strconv.ParseBool(n.Value)
		if err != nil {
			bad(fmt.Sprintf("is %q, not true or false", n.Value))
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
		if err != nil {
			bad(fmt.Sprintf("is %q, not a whole number", n.Value))
		} else if i < 0 {
			bad(fmt.Sprintf("is %d, below zero", i))
		}
		v.SetInt(i)
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || f != f || f-f != 0 {
			bad(fmt.Sprintf("is %q, not a finite number", n.Value))
		}
		v.SetFloat(f)
	default:
		bad("cannot be read")
	}
}

func (r *reader) fields(n *yaml.Node, v reflect.Value, field string) {
	if n.Kind != yaml.MappingNode {
		if n.Tag != "!!null" {
			r.wrong(n.Line, field, "is not a map of fields", "write one field a line, name: value")
		}
		return
	}
	known := map[string]int{}
	for i := range v.NumField() {
		known[fieldName(v.Type().Field(i))] = i
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		full := strings.TrimPrefix(field+"."+key.Value, ".")
		at, ok := known[key.Value]
		switch {
		case seen[key.Value]:
			r.wrong(key.Line, full, "stands twice", "keep one")
		case !ok:
			mend := "scrimp schema prints all fields"
			if near := nearest(key.Value, slices.Collect(maps.Keys(known))); near != "" {
				mend = "did you mean `" + near + "`?"
			}
			r.wrong(key.Line, full, "is unknown", mend)
		default:
			f := v.Type().Field(at)
			r.value(n.Content[i+1], v.Field(at), full, f.Tag.Get("doc"))
			r.enum(n.Content[i+1], f, full)
		}
		seen[key.Value] = true
	}
}

// enum checks a field that takes one of a few words.
func (r *reader) enum(n *yaml.Node, f reflect.StructField, field string) {
	words := f.Tag.Get("enum")
	if words == "" {
		return
	}
	values := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		values = n.Content
	}
	for _, v := range values {
		if v.Kind == yaml.ScalarNode && !slices.Contains(strings.Split(words, ","), v.Value) {
			r.wrong(v.Line, field, fmt.Sprintf("is %q", v.Value), "it is one of "+strings.ReplaceAll(words, ",", ", "))
		}
	}
}

func (r *reader) entries(n *yaml.Node, v reflect.Value, field, doc string) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n.Line, field, "is not a map", "write one entry a line, NAME: value")
		return
	}
	m := reflect.MakeMap(v.Type())
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, item := n.Content[i], reflect.New(v.Type().Elem()).Elem()
		if m.MapIndex(reflect.ValueOf(key.Value)).IsValid() {
			r.wrong(key.Line, field+"."+key.Value, "stands twice", "keep one")
		}
		r.value(n.Content[i+1], item, field+"."+key.Value, doc)
		m.SetMapIndex(reflect.ValueOf(key.Value), item)
	}
	v.Set(m)
}

func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// nearest returns the word that is few changes away from s, or "".
func nearest(s string, words []string) string {
	slices.Sort(words)
	best, least := "", max(2, len(s)/3)+1
	for _, w := range words {
		if d := distance(s, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

var (
	labelForm  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	signalForm = regexp.MustCompile(`^(SIG)?(TERM|INT|USR1|USR2|HUP)(@[0-9.]+(ms|s|m))?$`)
	gpuForm    = regexp.MustCompile(`^[A-Za-z0-9-]+(:[0-9]+(\+|\.\.[0-9]+)?)?$`)
	windowForm = regexp.MustCompile(`^[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9]$`)
	envForm    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// check holds what a single field cannot see.
func (r *reader) check(j Job, now time.Time) {
	wrong := func(field, cause, mend string) { r.wrong(r.lines[field], field, cause, mend) }
	if j.Command == "" && len(j.Args) == 0 {
		wrong("command", "is missing", "write what to run, such as command: python train.py")
	}
	if j.Command != "" && len(j.Args) > 0 {
		wrong("args", "stands beside command", "keep one of the two")
	}
	if !labelForm.MatchString(j.Name) || len(j.Name) > 40 {
		wrong("name", fmt.Sprintf("is %q", j.Name), "use small letters, digits and dashes, at most 40")
	}
	for field, text := range map[string]string{"progress.pattern": j.Progress.Pattern, "progress.saved": j.Progress.Saved} {
		if _, err := regexp.Compile(text); err != nil {
			wrong(field, "is not a regular expression ("+err.Error()+")", "scrimp uses Go's form, RE2")
		}
	}
	if j.Signal != "" && !signalForm.MatchString(j.Signal) {
		wrong("signal", fmt.Sprintf("is %q", j.Signal), "write TERM, INT, HUP, USR1 or USR2, with @90s for how long before the end")
	}
	if a := j.Resources.Accelerator; a != "" && !gpuForm.MatchString(a) {
		wrong("resources.accelerator", fmt.Sprintf("is %q", a), "write a kind and a count, such as H100:8")
	}
	if j.Window != "" && !windowForm.MatchString(j.Window) {
		wrong("window", fmt.Sprintf("is %q", j.Window), "write hours such as 22:00-06:00")
	}
	if _, set := r.lines["resources.cpus"]; set && j.Resources.CPUs.Min == 0 {
		wrong("resources.cpus", "asks for no processor", "ask for at least 1")
	}
	if d := j.Deadline; !d.IsZero() && !d.Resolve(now).After(now) {
		wrong("deadline", "has passed already ("+d.Resolve(now).Format(time.RFC3339)+")", "give a later one")
	}
	if b := j.Budget.Dollars; b != nil && b.Sign() <= 0 {
		wrong("budget", "is not above zero", "give at least what one step costs")
	}
	if j.Budget.GPUHours < 0 || j.Promise < 0 || j.Promise >= 1 {
		wrong("promise", "is out of range", "give a share between 0 and 1, such as 0.99")
	}
	if i := j.Checkpoint.Interval; i != "" && i != "auto" {
		if d, err := ParseDuration(i); err != nil || d <= 0 {
			wrong("checkpoint.interval", fmt.Sprintf("is %q", i), "write auto or a span such as 10m")
		}
	}
	for _, dir := range append(slices.Clone(j.Outputs), j.Checkpoint.Dir) {
		if strings.HasPrefix(path.Clean(dir), "..") {
			wrong("outputs", fmt.Sprintf("names %q, outside the work folder", dir), "name folders below it")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(j.Env)) {
		if !envForm.MatchString(name) {
			wrong("env."+name, "is not the name of a variable", "use letters, digits and _")
		}
	}
	if j.Metric.Name == "" && (j.Metric.Target != nil || j.Metric.Patience > 0) {
		wrong("metric", "has no name", "name the metric that the program reports")
	}
	if j.Notify != "" && !strings.HasPrefix(j.Notify, "https://") && !strings.HasPrefix(j.Notify, "http://") {
		wrong("notify", fmt.Sprintf("is %q", j.Notify), "give an http or https URL")
	}
}

// notes says which fields this release keeps and does not use yet.
func notes(j Job) []Note {
	var list []Note
	later := func(is bool, field, text string) {
		if is {
			list = append(list, Note{field, text})
		}
	}
	later(j.Nodes > 1, "nodes", "is kept and not used yet: the job runs on one machine")
	later(len(j.AnyOf) > 0, "any_of", "is kept and not used yet: the job's own resources are")
	later(len(j.Data) > 0, "data", "is kept and not used yet: transfers are not planned")
	later(j.Model != Model{}, "model", "is kept and not used yet: nothing is estimated from it")
	later(j.Window != "", "window", "is kept and not used yet: the job runs at any hour")
	later(j.Resources.Accelerator != "", "resources.accelerator", "is kept and not used yet: the local market sells processors only")
	later(j.Resources.Disk != Sizes{}, "resources.disk", "is kept and not used yet")
	later(j.Promise != 0, "promise", "is kept and not used yet: the guard holds the deadline")
	later(j.Compat != "", "compat", "is kept and not used yet")
	later(j.Work.Epochs > 0 || j.Work.Samples > 0 || j.Work.Tokens > 0, "work", "is used where it gives steps or time; epochs, samples and tokens are kept")
	return list
}
