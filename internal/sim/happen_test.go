package sim

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/decide/core"
)

// happens performs one scenario event.
func (s *stage) happens(words []string, line string) error {
	w := s.w
	a := &args{values: map[string]string{}}
	verb := words[0]
	if verb == "event" {
		return s.event(line)
	}
	for _, word := range words[1:] {
		if k, v, ok := strings.Cut(word, "="); ok {
			a.values[k] = v
		} else {
			a.plain = append(a.plain, word)
		}
	}
	switch verb {
	case "interrupt", "close": // interrupt ZONE [notice=2m] [taken=30s] [back=1h]
		z := w.zone(a.first())
		notice := a.span("notice", 0)
		taken, back := a.span("taken", notice), a.span("back", 0)
		how := "without notice"
		if notice > 0 {
			how = fmt.Sprintf("with %v notice", notice)
		}
		if taken != notice {
			how += fmt.Sprintf(", and it is taken after %v", taken)
		}
		s.line("market", "spot in %s ends %s", z.name, how)
		w.shut(z, notice, taken, func() {
			if back > 0 {
				w.after(back, func() { s.opens(z) })
			}
		})
	case "open": // open ZONE
		s.opens(w.zone(a.first()))
	case "price": // price ZONE spot=$2.00
		z := w.zone(a.first())
		if a.text("spot", "") != "" {
			w.reprice(z, a.rate("spot"))
			s.line("market", "spot in %s costs %s", z.name, price(z.rate))
		}
		if a.text("on-demand", "") != "" {
			z.onDemandRate = a.rate("on-demand")
			s.line("market", "on-demand in %s costs %s", z.name, price(z.onDemandRate))
		}
		w.quotes()
	case "refuse": // refuse 3 [reason=quota]: the next launches
		n := a.first()
		times, err := strconv.Atoi(n)
		if err != nil {
			return err
		}
		for range times {
			w.script.refuse = append(w.script.refuse, a.text("reason", "no_capacity"))
		}
	case "pending": // pending 40m: launches are granted with this delay
		d, err := time.ParseDuration(a.first())
		if err != nil {
			return err
		}
		w.script.pending = d
	case "slow": // slow 10m: terminations take this long
		d, err := time.ParseDuration(a.first())
		if err != nil {
			return err
		}
		w.script.slow = d
	case "lose": // lose answers: of the next launch
		a.has("answers")
		w.script.unheard++
	case "crash": // crash server [for=2m], crash server before launch [for=2m]
		a.has("server")
		away := a.span("for", 2*time.Minute)
		if a.has("before") {
			w.script.dies, w.script.away = a.first(), away
			break
		}
		s.line("server", "dies for %v", away)
		w.script.away = 0
		w.crash(away)
		w.after(away, func() { s.back = w.now; s.line("server", "is back") })
	case "limit": // limit team:a running=2
		if err := s.limit(a); err != nil {
			return err
		}
	case "approve", "reject": // approve JOB
		if err := s.review(verb, a); err != nil {
			return err
		}
	case "pause", "resume", "update": // pause JOB
		if err := s.pause(verb, a); err != nil {
			return err
		}
	case "cancel", "stop": // cancel JOB
		id := a.first()
		s.line("user", "%s %s", verb, id)
		w.step(core.JobEnded{Job: id, Save: verb == "stop"})
	case "rerun": // rerun JOB as=NAME
		old := w.job(a.first())
		again := *old
		again.id, again.terms.Name = a.text("as", ""), a.text("as", "")
		again.fails = nil
		s.line("user", "rerun %s as %s", old.id, again.id)
		w.jobs = append(w.jobs, again)
		s.submit(&w.jobs[len(w.jobs)-1])
	case "cut", "heal": // cut i-1: its agent cannot reach the server
		i := w.instances[a.first()]
		if i == nil || i.agent == nil {
			return fmt.Errorf("no such machine")
		}
		i.agent.cut = verb == "cut"
		s.line("network", "%s %s", verb, i.id)
	case "unlist", "list": // unlist i-1: the provider's inventory omits it
		id := a.first()
		w.script.unlisted[id] = verb == "unlist"
		s.line("provider", "%ss %s", verb, id)
	case "sweep":
		w.sweep()
	case "orphan": // orphan ZONE: a machine with our tag that no server requested
		z := w.zone(a.first())
		i := w.orphan(z)
		s.line("provider", "rents %s, and nobody asked for it", i.id)
	case "sleep": // sleep 3h: the laptop sleeps
		d, err := time.ParseDuration(a.first())
		if err != nil {
			return err
		}
		s.line("laptop", "sleeps for %v", d)
		w.sleeps(d)
	case "clock": // clock -5m: the server's clock is set
		d, err := time.ParseDuration(strings.TrimPrefix(a.first(), "+"))
		if err != nil {
			return err
		}
		w.skew += d
		s.line("clock", "is set by %v", d)
	case "report": // report JOB metric loss 0.5
		id := a.first()
		a.has("metric")
		name := a.first()
		text := a.first()
		s.line("report", "%s: %s is %s", id, name, text)
		return s.report(id, name, text)
	default:
		return fmt.Errorf("nobody knows %q", verb)
	}
	return a.done()
}

func (s *stage) opens(z *zone) {
	if z.open {
		return
	}
	z.open = true
	s.line("market", "spot in %s is back", z.name)
	s.w.quotes()
}

// report makes a job's program report a metric of its own.
func (s *stage) report(id, name, text string) error {
	for _, i := range slices.Backward(s.w.order) {
		if a := i.agent; a != nil && a.job.id == id && !a.dead && !a.over {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return err
			}
			a.say(func(n int64) core.Body {
				b := core.Progressed{Attempt: a.attempt, Message: n, Step: a.step(), Total: a.job.steps, Metrics: map[string]float64{name: v}}
				if math.IsNaN(v) || math.IsInf(v, 0) {
					b.Metrics, b.Broken = nil, []string{name}
				}
				return b
			})
			return nil
		}
	}
	return fmt.Errorf("no program of %s runs", id)
}

// event passes a recorded event to the core unchanged, with its own time.
func (s *stage) event(line string) error {
	_, text, _ := strings.Cut(line, "event")
	var e core.Event
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return err
	}
	s.w.step(e.Body)
	return nil
}
