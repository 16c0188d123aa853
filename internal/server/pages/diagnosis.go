package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/draw"
	"scrimp/internal/wire/telemetry"
)

// diagnosisPage shows why a job uses its machines badly.
type diagnosisPage struct {
	client.Diagnosis
	Path     string // address of the job's page
	State    string
	Closed   bool
	Meters   []meter
	GPU      bool   // the use of a GPU was measured
	Measures []fact // the other averages
	Phases   template.HTML
	Use      []useChart
	Drawn    []drawnCause
}

// meter is an average share with its drawing.
type meter struct {
	Name, Says string
	Value      float64
	Drawing    template.HTML
}

// drawnCause is a cause with a drawing of its saving.
type drawnCause struct {
	client.DiagnosisCause
	Saving  string
	Drawing template.HTML
}

// meterLines lists the shares that are drawn, and their names.
var meterLines = []struct{ metric, name string }{
	{telemetry.GPU.String(), "GPU"}, {"gpu_memory_used_ratio", "GPU memory"}, {telemetry.CPU.String(), "CPU"},
	{telemetry.IOWait.String(), "I/O wait"},
}

// Limits of the use of a GPU: sizeDown is too little for long, aimed is the target, and wellFed is enough.
const (
	sizeDown = 0.50
	aimed    = 0.70
	wellFed  = 0.85
)

func diagnosisOf(v *visit) (any, error) {
	id := url.PathEscape(v.r.PathValue("id"))
	p := &diagnosisPage{Path: "/jobs/" + id}
	var j client.Job
	if err := v.get("/v1/jobs/"+id, &j); err != nil {
		return nil, err
	}
	if err := v.get("/v1/jobs/"+id+"/diagnosis", &p.Diagnosis); err != nil {
		return nil, err
	}
	p.State, p.Closed = j.State, j.Closed
	var t client.Telemetry
	if v.get("/v1/jobs/"+id+"/telemetry?last=6h", &t) == nil { // on an error, the page goes without curves
		p.Use = useCharts(t)
	}
	left := maps.Clone(p.Diagnosis.Use)
	for _, m := range meterLines {
		if share, known := left[m.metric]; known {
			p.Meters = append(p.Meters, meterOf(m.name, share))
			p.GPU = p.GPU || m.metric == telemetry.GPU.String()
			delete(left, m.metric)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		p.Measures = append(p.Measures, fact{Name: metricName(name), Average: measured(name, left[name])})
	}
	p.Phases = phases(p.Diagnosis.Phases)
	for _, c := range p.Causes {
		p.Drawn = append(p.Drawn, drawnCause{c, savingOf(c), savingBar(c)})
	}
	return p, nil
}

// meterOf draws an average share. A GPU's has the limits that judge it.
func meterOf(name string, share float64) meter {
	m := meter{Name: name, Value: share}
	var limits []float64
	if name == "GPU" {
		limits = []float64{sizeDown, aimed, wellFed}
		switch {
		case share >= wellFed:
			m.Says = "busy enough"
		case share >= aimed:
			m.Says = "above the target of 70 %"
		case share >= sizeDown:
			m.Says = "below the target of 70 %"
		default:
			m.Says = "below 50 %: too large, or waiting"
		}
	}
	m.Drawing = extent(0, share, share, fmt.Sprintf("%s used %.0f %%", name, share*100), limits...)
	return m
}

// savingOf formats the saving from removing a cause.
func savingOf(c client.DiagnosisCause) string {
	switch {
	case c.Share == nil:
		return ""
	case c.SavingUSD == nil || c.Low == nil || c.High == nil:
		return fmt.Sprintf("saves %.0f %% of the cost (%.0f %% to %.0f %%)", c.Share.Value*100, c.Share.Low*100,
			c.Share.High*100)
	}
	return fmt.Sprintf("saves %s an hour (%s to %s), %.0f %% of the cost", dollars(*c.SavingUSD), dollars(*c.Low),
		dollars(*c.High), c.Share.Value*100)
}

// savingBar draws the range of a saving as a share of the cost.
func savingBar(c client.DiagnosisCause) template.HTML {
	if c.Share == nil {
		return ""
	}
	return extent(c.Share.Low, c.Share.Value, c.Share.High, fmt.Sprintf("share of the cost saved: %.0f %%, from %.0f %% "+
		"to %.0f %%", c.Share.Value*100, c.Share.Low*100, c.Share.High*100))
}

// extent draws a range from 0 to 1 with its middle, and limits.
func extent(low, middle, high float64, label string, limits ...float64) template.HTML {
	x := func(v float64) float64 { return max(0, min(1, v)) * 100 }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="range" viewBox="0 0 100 14" preserveAspectRatio="none" role="img" aria-label="%s">`+
		`<rect class="rail" y="5" width="100" height="4"/><rect class="fill" x="%.2f" y="3" width="%.2f" height="8"/>`,
		template.HTMLEscapeString(label), x(low), max(0, x(high)-x(low)))
	for _, l := range limits {
		fmt.Fprintf(&b, `<rect class="tick two" x="%.2f" width="0.6" height="14"/>`, x(l))
	}
	fmt.Fprintf(&b, `<rect class="middle" x="%.2f" width="0.8" height="14"/></svg>`, min(99.2, x(middle)))
	return template.HTML(b.String())
}

// phases draws how the measured time splits into set-up, work and the time after it.
func phases(p client.DiagnosisPhases) template.HTML {
	whole := p.SetUp + p.Work + p.After
	if !(whole > 0) {
		return ""
	}
	var b strings.Builder
	var says []string
	x := 0.0
	for _, one := range []struct {
		name, class string
		s           float64
	}{{"set-up", "start-up", p.SetUp}, {"work", "useful", p.Work}, {"after it", "idle", p.After}} {
		wide := max(0, one.s) / whole * 100
		text := fmt.Sprintf("%s %s, %.0f %%", one.name, lasting(one.s), wide)
		says = append(says, text)
		fmt.Fprintf(&b, `<rect class="use %s" x="%.2f" width="%.2f" height="6"><title>%s</title></rect>`, one.class, x, wide,
			template.HTMLEscapeString(text))
		x += wide
	}
	return template.HTML(fmt.Sprintf(`<svg class="bar shares" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" `+
		`aria-label="%s">%s</svg><p class="soft">%s</p>`, template.HTMLEscapeString(strings.Join(says, "; ")), b.String(),
		template.HTMLEscapeString(strings.Join(says, "; "))))
}

// diagnosesPage shows the first cause of each of the newest jobs.
type diagnosesPage struct {
	Rows       []diagnosisRow
	Classes    []classSum
	Without    int // jobs without a cause
	Busy       int // jobs of Rows without a cause whose machine other programs used
	Unmeasured int
	Sum        float64 // of the first causes with a price, an hour
	Priced     int
	Sinces     []option
	Team       string
	asked      string
	flags      url.Values
}

// diagnosisRow is a job with its first cause.
type diagnosisRow struct {
	client.Diagnosis
	First drawnCause
}

// classSum is what the first causes of a class waste an hour.
type classSum struct {
	Class string
	USD   float64
	Jobs  int
}

func (p *diagnosesPage) twin() string { return p.asked }

// command returns the scrimp diagnose command with the page's options.
func (p *diagnosesPage) command() string {
	if p.Team == "" {
		return "scrimp diagnose --team TEAM --since " + p.flags.Get("since")
	}
	return commandOf("scrimp diagnose", p.flags, "team", "since")
}

// Found counts the jobs with a cause.
func (p *diagnosesPage) Found() int { return len(p.Rows) - p.Busy }

func diagnosesOf(v *visit) (any, error) {
	q := v.r.URL.Query()
	p := &diagnosesPage{flags: url.Values{"since": {"7d"}}, Team: q.Get("team")}
	if since := q.Get("since"); since != "" {
		p.flags.Set("since", since)
	}
	if p.Team != "" {
		p.flags.Set("team", p.Team)
	}
	for _, o := range []option{{Value: "24h", Text: "24 hours"}, {Value: "7d", Text: "7 days"},
		{Value: "30d", Text: "30 days"}} {
		o.Chosen = o.Value == p.flags.Get("since")
		p.Sinces = append(p.Sinces, o)
	}
	p.asked = "/v1/diagnoses?" + p.flags.Encode()
	var list []client.Diagnosis
	if err := v.get(p.asked, &list); err != nil {
		return nil, err
	}
	p.fill(list)
	return p, nil
}

// fill sorts the diagnoses by what their first causes waste, and sums these up.
func (p *diagnosesPage) fill(list []client.Diagnosis) {
	byClass := map[string]*classSum{}
	for _, d := range list {
		switch {
		case len(d.Causes) == 0 && d.Busy:
			p.Busy++
			p.Rows = append(p.Rows, diagnosisRow{d, drawnCause{DiagnosisCause: client.DiagnosisCause{Class: "machine_busy",
				Evidence: d.Note}}})
			continue
		case len(d.Causes) == 0 && d.Note != "":
			p.Unmeasured++
			continue
		case len(d.Causes) == 0:
			p.Without++
			continue
		}
		c := d.Causes[0]
		p.Rows = append(p.Rows, diagnosisRow{d, drawnCause{c, savingOf(c), savingBar(c)}})
		if c.SavingUSD == nil {
			continue
		}
		if byClass[c.Class] == nil {
			byClass[c.Class] = &classSum{Class: c.Class}
		}
		sum := byClass[c.Class]
		sum.USD, sum.Jobs = sum.USD+*c.SavingUSD, sum.Jobs+1
		p.Sum, p.Priced = p.Sum+*c.SavingUSD, p.Priced+1
	}
	slices.SortStableFunc(p.Rows, func(a, b diagnosisRow) int {
		return cmp.Or(cmp.Compare(orZero(b.First.SavingUSD), orZero(a.First.SavingUSD)),
			cmp.Compare(shareOf(b.First), shareOf(a.First)))
	})
	for _, name := range slices.Sorted(maps.Keys(byClass)) {
		p.Classes = append(p.Classes, *byClass[name])
	}
	slices.SortStableFunc(p.Classes, func(a, b classSum) int { return cmp.Compare(b.USD, a.USD) })
}

func orZero(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}

func shareOf(c drawnCause) float64 {
	if c.Share == nil {
		return 0
	}
	return c.Share.Value
}

// Limits of the running jobs that the overview diagnoses, and the share of its cost from which a job's waste needs
// attention.
const (
	watchedJobs = 20
	wastesMuch  = 0.3
)

// wasteful lists the running jobs whose first cause wastes much.
func wasteful(v *visit) (list []attention) {
	var found []client.Diagnosis
	if v.get(fmt.Sprintf("/v1/diagnoses?running=1&limit=%d", watchedJobs), &found) != nil {
		return nil // the overview shows all else
	}
	for _, d := range found {
		if len(d.Causes) == 0 || d.Causes[0].Share == nil || d.Causes[0].Share.Value < wastesMuch {
			continue
		}
		c := d.Causes[0]
		text := fmt.Sprintf("%s wastes %.0f %% of its cost", readable(c.Class), c.Share.Value*100)
		if c.SavingUSD != nil {
			text += ", " + dollars(*c.SavingUSD) + " an hour"
		}
		list = append(list, attention{Level: "wait", What: "Waste", Subject: d.Job,
			Path: "/jobs/" + url.PathEscape(d.Job) + "/diagnosis", Text: text + ".", Command: "scrimp diagnose " + d.Job})
	}
	return list
}

// sinceMeasured formats for how long a job was measured.
func sinceMeasured(s float64) string {
	return draw.Span(time.Duration(min(s, 1e9) * float64(time.Second)).Round(time.Second))
}

// hourly formats dollars an hour; nil is unknown.
func hourly(v any) template.HTML {
	f, known := floatOf(v)
	if !known {
		return unknown
	}
	return template.HTML(template.HTMLEscapeString(dollars(f) + "/h"))
}
