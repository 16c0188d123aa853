package queue

import (
	"container/heap"
	"math"
	"slices"
	"time"

	"scrimp/internal/decide/pack"
	"scrimp/internal/decide/pack/scheduler"
	"scrimp/internal/lib/money"
)

// Period is the time between two rounds of a scheduler, in seconds.
const Period = 300

// slack is added to each deadline, in seconds.
const slack = 900

// unit is a second of work: progress counts billionths of a second, so that sums are exact.
const unit = 1_000_000_000

// Factors are the deadlines to count misses for, as multiples of the work.
var Factors = []float64{1.1, 1.25, 1.5, 2, 3}

// phase is the phase of a task.
type phase int

const (
	waiting  phase = iota // on no machine and bound for none
	bound                 // for a machine that is not usable yet or has no room
	setup                 // fetches its data and image
	initial               // initialises and slows down its neighbours
	running               // makes progress
	stopping              // runs until the machine stops it for a move
	leaving               // stopped; uploads its state
	done
)

// The order of events within a second.
const (
	due = iota
	arrival
	round
	completion
)

// event is a scheduled call.
type event struct {
	at    int64
	class int
	seq   int64 // events of the same second and class run in the order of scheduling
	task  int   // or -1
	turn  int   // of the task at scheduling time; an event of an older turn is void
	what  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	a, b := &e[i], &e[j]
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.class != b.class:
		return a.class < b.class
	}
	return a.seq < b.seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// task is the state of a job; each job is one task.
type task struct {
	*Job
	phase phase
	on    int // its current or last machine, or -1
	to    int // the machine that it is bound for, or -1
	turn  int
	done  int64 // progress in units
	since int64 // second up to which done is counted
	rate  int64 // units a second
	end   int64 // second at which it ended
	moves int
}

// machine is the state of a machine.
type machine struct {
	kind     int
	billed   int64 // second from which it is billed
	usable   int64 // second from which tasks start
	released bool
	ended    int64 // second, or -1
	used     pack.Size
	tasks    []int // tasks that take room
	bound    []int // waiting tasks, in order of arrival
	images   []int
}

// Config describes one run of a policy.
type Config struct {
	Jobs         []Job
	Types        []Machine
	Interference Interference
	Policy       string
	// Deadline is the factor of the deadlines, for policies that may know them.
	Deadline float64
	// Clock measures rounds; nil measures none.
	Clock func() time.Time
	// Note, if set, is called with each event.
	Note func(Entry)
}

// world is the state of a run.
type world struct {
	Config
	policy   scheduler.Policy
	offers   []pack.Type
	now      int64
	seq      int64
	events   events
	tasks    []task
	machines []machine
	active   []int // arrived and unfinished tasks
	up       []int // machines that are not released
	ended    int
	spent    []time.Duration
}

// Run plays the jobs under a policy. The policy's name is one of scheduler.Names.
func Run(c Config) Result {
	policy, ok := scheduler.New(c.Policy)
	if !ok {
		panic("queue: no policy " + c.Policy)
	}
	return run(c, policy)
}

func run(c Config, policy scheduler.Policy) Result {
	w := &world{Config: c, policy: policy, tasks: make([]task, len(c.Jobs))}
	for _, t := range c.Types {
		w.offers = append(w.offers, pack.Type{Name: t.Name, Size: t.Size, Price: t.Price, Boot: t.Run + t.Register,
			Ready: t.Instantiate + t.Run + t.Register})
	}
	for i := range c.Jobs {
		w.tasks[i] = task{Job: &c.Jobs[i], on: -1, to: -1}
		w.plan(c.Jobs[i].Arrival, arrival, -1, func() {
			w.active = append(w.active, i)
			w.note(Entry{Kind: Arrived, Task: i, Machine: -1})
		})
	}
	w.plan(0, round, -1, w.round)
	for len(w.events) > 0 {
		e := heap.Pop(&w.events).(event)
		if e.task >= 0 && e.turn != w.tasks[e.task].turn {
			continue
		}
		w.now = e.at
		e.what()
	}
	return w.result()
}

func (w *world) plan(at int64, class, task int, what func()) {
	w.seq++
	e := event{at: at, class: class, seq: w.seq, task: task, what: what}
	if task >= 0 {
		e.turn = w.tasks[task].turn
	}
	heap.Push(&w.events, e)
}

func (w *world) note(e Entry) {
	if w.Note != nil {
		e.At = w.now
		w.Note(e)
	}
}

// round asks the policy for a plan and carries it out.
func (w *world) round() {
	if w.ended == len(w.tasks) && len(w.up) == 0 {
		return
	}
	next := w.now + Period
	if len(w.active) == 0 && len(w.up) == 0 { // nothing to decide before the next arrival
		next = max(next, (w.firstArrival()+Period-1)/Period*Period)
	} else {
		v := w.view()
		var began time.Time
		if w.Clock != nil {
			began = w.Clock()
		}
		p := w.policy.Place(&v)
		if w.Clock != nil {
			w.spent = append(w.spent, w.Clock().Sub(began))
		}
		w.do(p)
	}
	w.plan(next, round, -1, w.round)
}

func (w *world) firstArrival() int64 {
	first := int64(math.MaxInt64 - Period)
	for i := range w.tasks {
		if a := w.tasks[i].Arrival; a > w.now {
			first = min(first, a)
		}
	}
	return first
}

// view returns what the policy may see.
func (w *world) view() pack.View {
	v := pack.View{Now: w.now, Period: Period, Types: w.offers}
	place := map[int]int{}
	for i, m := range w.up {
		place[m] = i
		v.Machines = append(v.Machines, pack.Machine{ID: m, Type: w.machines[m].kind})
	}
	slices.Sort(w.active)
	for _, i := range w.active {
		t := &w.tasks[i]
		x := pack.Task{ID: i, Kind: t.Kind, Size: t.Size, Arrived: t.Arrival, Setup: t.Fetch + t.Build + t.Init,
			Leave: t.Kill + t.Upload, On: pack.Waiting, Busy: t.phase == initial || t.phase == running || t.phase == stopping,
			Fixed: t.phase != waiting && t.phase != running}
		at := t.on
		if t.to >= 0 {
			at = t.to
		}
		if at >= 0 && t.phase != waiting {
			x.On = place[at]
			v.Machines[x.On].Tasks = append(v.Machines[x.On].Tasks, len(v.Tasks))
		}
		done := t.done
		if t.phase == running || t.phase == stopping {
			x.Rate = float64(t.rate) / unit
			done += (w.now - t.since) * t.rate
		}
		x.Progress = float64(done) / unit
		if scheduler.NeedsOracle(w.Policy) {
			x.Oracle = pack.Oracle{Known: true, Left: math.Max(0, float64(t.Work-done)/unit), Deadline: t.due(w.Deadline)}
		}
		v.Tasks = append(v.Tasks, x)
	}
	return v
}

// due returns the second of a job's deadline, rounded down.
func (j *Job) due(factor float64) int64 {
	return j.Arrival + int64(factor*float64(j.Work)/unit) + slack
}

// do carries out a plan. It panics on an invalid one: that is a bug in the policy.
func (w *world) do(p pack.Plan) {
	targets := slices.Clone(w.up)
	for _, kind := range p.Launches {
		m := len(w.machines)
		t := w.Types[kind]
		w.machines = append(w.machines, machine{kind: kind, billed: w.now + t.Instantiate,
			usable: w.now + t.Instantiate + t.Run + t.Register, ended: -1})
		w.up = append(w.up, m)
		targets = append(targets, m)
		w.note(Entry{Kind: Launched, Task: -1, Machine: m, Type: kind})
		w.plan(w.machines[m].usable, due, -1, func() { w.start(m) })
	}
	view := slices.Clone(w.active)
	for _, move := range p.Moves {
		w.move(view[move.Task], targets[move.To])
	}
	for _, r := range p.Releases {
		m := targets[r]
		w.machines[m].released = true
		w.up = slices.DeleteFunc(w.up, func(o int) bool { return o == m })
		w.note(Entry{Kind: Released, Task: -1, Machine: m})
		w.endIfEmpty(m)
	}
}

// cost returns the total cost of the machines.
func (w *world) cost() (sum money.Amount) {
	for i := range w.machines {
		m := &w.machines[i]
		if s := m.ended - m.billed; s > 0 {
			sum = sum.Add(w.Types[m.kind].Price.Until(time.Duration(s) * time.Second))
		}
	}
	return sum
}
