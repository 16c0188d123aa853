package sim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// command runs one line of a scenario. docs/scenarios.md lists the commands.
func (s *stage) command(line string) error {
	words := strings.Fields(line)
	a := &args{values: map[string]string{}}
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok && !strings.HasPrefix(w, "{") {
			a.values[k] = v
		} else {
			a.plain = append(a.plain, w)
		}
	}
	var do func() error
	switch words[0] {
	case "config":
		do = func() error { return s.config(a) }
	case "market":
		do = func() error { return s.market(a) }
	case "job":
		do = func() error { return s.job(a) }
	case "at":
		if len(words) < 3 {
			return fmt.Errorf("at what time, and what? `at 10m interrupt a`")
		}
		d, err := time.ParseDuration(words[1])
		if err != nil {
			return err
		}
		s.todo++
		_, rest, _ := strings.Cut(line, words[1])
		s.w.at(epoch.Add(d), func() {
			s.todo--
			if err := s.happens(strings.Fields(rest), rest); err != nil {
				s.w.breaks("script: %s: %v", strings.TrimSpace(rest), err)
			}
		})
		return nil
	case "still": // only the scenario's own events happen
		s.w.script.still = true
		do = func() error { return nil }
	case "run":
		do = func() error {
			a.plain = nil
			if strings.Join(words, " ") == "run until done" {
				s.run(horizon)
				return nil
			}
			d, err := time.ParseDuration(strings.Join(words[1:], ""))
			s.run(d)
			return err
		}
	default:
		return fmt.Errorf("no command %q", words[0])
	}
	if err := do(); err != nil {
		return err
	}
	return a.done()
}

// args holds the words after a command; an unused field is an error.
type args struct {
	plain  []string
	values map[string]string
	used   map[string]bool
	err    error
}

func (a *args) text(key, otherwise string) string {
	if a.used == nil {
		a.used = map[string]bool{}
	}
	a.used[key] = true
	if v, ok := a.values[key]; ok {
		return v
	}
	return otherwise
}

func value[T any](a *args, key string, otherwise T, parse func(string) (T, error)) T {
	t := a.text(key, "")
	if t == "" {
		return otherwise
	}
	v, err := parse(t)
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("%s=%s: %w", key, t, err)
	}
	return v
}

func (a *args) span(key string, otherwise time.Duration) time.Duration {
	return value(a, key, otherwise, time.ParseDuration)
}

func (a *args) count(key string, otherwise int64) int64 {
	return value(a, key, otherwise, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
}

func (a *args) number(key string, otherwise float64) float64 {
	return value(a, key, otherwise, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
}

func (a *args) rate(key string) money.Rate {
	return value(a, key, 0, func(s string) (money.Rate, error) { return money.ParseRate(strings.TrimPrefix(s, "$")) })
}

func (a *args) has(word string) bool {
	for i, p := range a.plain {
		if p == word {
			a.plain = append(a.plain[:i:i], a.plain[i+1:]...)
			return true
		}
	}
	return false
}

// first removes and returns the first plain word.
func (a *args) first() string {
	if len(a.plain) == 0 {
		a.err = fmt.Errorf("a word is missing")
		return ""
	}
	w := a.plain[0]
	a.plain = a.plain[1:]
	return w
}

func (a *args) done() error {
	if a.err != nil {
		return a.err
	}
	for _, k := range sortedKeys(a.values) {
		if !a.used[k] {
			return fmt.Errorf("nobody knows %q", k)
		}
	}
	if len(a.plain) > 0 {
		return fmt.Errorf("nobody knows %q", a.plain)
	}
	return nil
}

func (s *stage) config(a *args) error {
	c := &s.cfg
	c.MaxRunning = int(a.count("max_running", int64(c.MaxRunning)))
	c.Detect, c.BootLimit = a.span("detect", c.Detect), a.span("boot_limit", c.BootLimit)
	c.CoolOff, c.Patience = a.span("cool_off", c.CoolOff), a.span("patience", c.Patience)
	s.w.leave = a.span("leave", s.w.leave)
	s.w.untried = a.has("untried")
	s.w.script.silent = a.span("silent", s.w.script.silent)
	return nil
}

// market opens a zone that sells spot, on-demand, or both.
func (s *stage) market(a *args) error {
	z := s.w.zone(a.first())
	z.open = !a.has("closed")
	z.rate, z.onDemandRate = a.rate("spot"), a.rate("on-demand")
	o := market.Offer{
		Provider: a.text("provider", "sim"), Region: a.text("region", "r"), Zone: z.name, Machine: "m", CPUs: int(a.count("cpus", 4)), Memory: 8 * size.GiB, Currency: money.USD,
		Speed: a.number("speed", 1), Accelerators: int(a.count("gpus", 0)), Notice: a.span("notice", 0), MaxLifetime: a.span("lifetime", 0), Images: a.has("images"),
		Billing: market.Billing{Minimum: a.span("minimum", time.Minute), FreeIfInterruptedWithin: a.span("free", 0)},
	}
	if z.rate > 0 {
		o.Capacity = market.Spot
		o.ID = market.ID(o)
		z.offer, z.spot = o, o.ID
	}
	if rate := a.rate("reserved"); rate > 0 {
		z.onDemandRate = rate
		r := market.Reservation{Count: int(a.count("count", 1)), From: epoch.Add(a.span("from", 0)), Until: epoch.Add(a.span("until", 24*time.Hour)), Team: a.text("team", "")}
		r.Paid = rate.Times(r.Count).Until(r.Until.Sub(r.From))
		o.Capacity, o.Notice, o.Reserved = market.Reserved, 0, r
		o.ID = market.ID(o)
		z.firmOffer, z.firm = o, o.ID
		s.w.reserves(z)
		return nil
	}
	if z.onDemandRate > 0 {
		o.Capacity, o.Notice = market.OnDemand, 0
		o.ID = market.ID(o)
		z.firmOffer, z.firm = o, o.ID
	}
	return nil
}

// job schedules the submission of a job.
func (s *stage) job(a *args) error {
	j := simJob{
		id: a.first(), pace: a.number("pace", 60), boot: a.span("boot", time.Minute), save: a.span("save", 10*time.Second),
		outputs: a.has("outputs"), asks: a.span("asks", 0), secret: a.text("secret", ""), spec: json.RawMessage(`{}`),
	}
	work := a.span("work", 10*time.Hour)
	j.steps = a.count("steps", int64(work.Hours()*j.pace))
	j.flat, j.nan, j.hangs, j.deaf = a.count("flat", 0), a.count("nan", 0), a.count("hangs", 0), a.has("deaf")
	for _, f := range strings.FieldsFunc(a.text("fails", ""), func(r rune) bool { return r == ',' }) {
		at, exit, _ := strings.Cut(f, ":")
		status, err := strconv.Atoi(exit)
		if err != nil {
			return err
		}
		if at == "setup" {
			j.fails = append(j.fails, failure{exit: status, setup: true})
			continue
		}
		step, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return err
		}
		j.fails = append(j.fails, failure{step: step, exit: status})
	}
	j.terms = core.Terms{
		Name: j.id, Currency: money.USD, Steps: j.steps, Work: work, Owner: ledger.Owner{Team: a.text("team", "t"), Project: "p"},
		Restart: a.span("restart", 3*time.Minute), Grace: a.span("grace", 2*time.Minute), Interval: a.span("interval", 0), Saves: !a.has("no_checkpoint"),
		Need:     plan.Need{Requirements: plan.Requirements{CPUs: int(a.count("cpus", 1)), Accelerators: int(a.count("gpus", 0)), Image: a.text("image", "")}, MaxRate: a.rate("max_price")},
		GPUHours: a.number("gpu_hours", 0), WallClock: a.span("wall_clock", 0), IdleLimit: a.span("idle", 0),
		DeadlineFirst: a.text("first", "budget") == "deadline", MaxRetries: int(a.count("retries", 10)),
		Priority: map[string]int{"critical": 2, "normal": 1, "low": 0}[a.text("priority", "normal")], Unpreemptible: a.has("unpreemptible"),
	}
	if err := alternatives(a, &j.terms.Need); err != nil {
		return err
	}
	if a.has("unknown_work") {
		j.terms.Work, j.terms.Steps = 0, 0
	}
	for _, c := range strings.FieldsFunc(a.text("codes", ""), func(r rune) bool { return r == ',' }) {
		code, err := strconv.Atoi(c)
		if err != nil {
			return err
		}
		j.terms.RetryCodes = append(j.terms.RetryCodes, code)
	}
	if budget := a.rate("budget"); budget > 0 {
		j.terms.Budget, j.terms.HasBudget = money.Picos(int64(budget)), true
	}
	m := policy.Metric{Patience: a.count("plateau", 0), MinDelta: a.number("min_delta", 0)}
	if target := a.text("target", ""); target != "" {
		m.Target, m.HasGoal = a.number("target", 0), true
	}
	m.Maximize = a.has("maximize")
	m.Name = a.text("metric", "")
	if m.Name == "" && (m.HasGoal || m.Patience > 0) {
		m.Name = "loss"
	}
	j.terms.Metric = m
	at, deadline := a.span("at", 0), a.span("deadline", 0)
	s.todo++
	s.w.jobs = append(s.w.jobs, j)
	n := len(s.w.jobs) - 1
	s.w.after(at, func() {
		s.todo--
		j := &s.w.jobs[n]
		if deadline > 0 {
			j.terms.Deadline = s.w.now.Add(deadline)
		}
		s.submit(j)
	})
	return nil
}

// alternatives parses variants=NAME:CPUS:THROUGHPUT,… and ladder=CAPACITY[/ZONE][@VARIANT][<PRICE][:FAILURES][:FOR],….
func alternatives(a *args, n *plan.Need) error {
	list := func(key string) []string {
		return strings.FieldsFunc(a.text(key, ""), func(r rune) bool { return r == ',' })
	}
	for _, v := range list("variants") {
		w := plan.Variant{}
		if _, err := fmt.Sscanf(strings.ReplaceAll(v, ":", " "), "%s %d %f", &w.Name, &w.CPUs, &w.Throughput); err != nil {
			return fmt.Errorf("variants: %q: %w", v, err)
		}
		n.Variants = append(n.Variants, w)
	}
	for _, text := range list("ladder") {
		parts := strings.Split(text, ":")
		what, most, limited := strings.Cut(parts[0], "<")
		what, use, _ := strings.Cut(what, "@")
		capacity, zone, _ := strings.Cut(what, "/")
		r := plan.Rung{Use: use}
		if limited {
			var err error
			if r.MaxRate, err = money.ParseRate(most); err != nil {
				return fmt.Errorf("ladder: %q: %w", text, err)
			}
		}
		if capacity != "any" {
			r.Capacity = []market.Capacity{market.Capacity(capacity)}
		}
		if zone != "" {
			r.Zones = []string{zone}
		}
		for _, p := range parts[1:] {
			if count, err := strconv.Atoi(p); err == nil {
				r.Failures = count
				continue
			}
			d, err := time.ParseDuration(p)
			if err != nil {
				return fmt.Errorf("ladder: %q: %w", text, err)
			}
			r.For = d
		}
		n.Ladder = append(n.Ladder, r)
	}
	return nil
}

func (s *stage) submit(j *simJob) {
	if !s.w.step(core.JobSubmitted{Job: j.id, Terms: j.terms, Spec: j.spec, Asking: s.w.asking(*j)}) {
		s.w.after(time.Minute, func() { s.submit(j) })
	}
}
