package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
	"scrimp/internal/work/schedule"
	"scrimp/internal/work/study"
)

// GroupTerms is what a group may do and spend.
type GroupTerms struct {
	Kind      groups.Kind   `json:"kind,omitempty"`
	Owner     ledger.Owner  `json:"owner"`            // whose its members are too
	Parent    string        `json:"parent,omitempty"` // the group whose budget it takes from; "": none, its limits hold it
	Budget    money.Amount  `json:"budget,omitzero"`  // the most that its members may be given together
	HasBudget bool          `json:"has_budget,omitempty"`
	AtOnce    int           `json:"at_once"`            // members that are open at once, at most
	Grace     time.Duration `json:"grace_ns,omitempty"` // of a member
	Rate      money.Rate    `json:"rate,omitempty"`     // the highest at which one is rented; 0: the highest for sale
	After     []Dependency  `json:"after,omitempty"`    // what must be over before a member begins
	// Array and Member say what the members of an array are: the same job, each with its index.
	Array  groups.Indexes `json:"array,omitzero"`
	Member *Terms         `json:"member,omitempty"`
	// Study says what a study searches for. Its members are trials, the same job with other parameters.
	Study *study.Spec `json:"study,omitempty"`
	// Pipeline says how the stages of a pipeline depend on each other, and Stages what each does. Member says the name
	// and the owner of the whole.
	Pipeline *pipeline.Spec `json:"pipeline,omitempty"`
	Stages   []Terms        `json:"stages,omitempty"`
	// Schedule says when a schedule runs, and Run what: the terms of each of its runs, which are groups that take from
	// its budget.
	Schedule *schedule.Spec `json:"schedule,omitempty"`
	Run      *GroupTerms    `json:"run,omitempty"`
}

// What can happen to groups.
type (
	// GroupOpened: somebody begins an array, a study, a pipeline or a schedule. Spec is the job file of its members.
	GroupOpened struct {
		Group string          `json:"group"`
		Terms GroupTerms      `json:"terms"`
		Spec  json.RawMessage `json:"spec,omitempty"`
		// Specs are the job files of the stages of a pipeline.
		Specs []json.RawMessage `json:"specs,omitempty"`
	}
	// GroupReviewed: one that waits for approval has it, or never gets it.
	GroupReviewed struct {
		Group    string `json:"group"`
		Approved bool   `json:"approved"`
		Reason   string `json:"reason,omitempty"`
	}
	// GroupClosed: it gets no more members, and neither do those that take from it. Those that it has go on, unless
	// Members says how they end.
	GroupClosed struct {
		Group   string     `json:"group"`
		Members EndMembers `json:"members,omitempty"`
	}
	// Proposed: a planner that saw the group as it was after the event Base proposes moves.
	Proposed struct {
		Group string        `json:"group"`
		Base  uint64        `json:"base"`
		Moves []groups.Move `json:"moves,omitempty"`
	}
	// Spawn: parts of a group begin, all or none.
	Spawn struct {
		Parent string         `json:"parent"`
		Parts  []JobSubmitted `json:"parts"`
	}
)

func (GroupOpened) Kind() string   { return "group_opened" }
func (GroupReviewed) Kind() string { return "group_reviewed" }
func (GroupClosed) Kind() string   { return "group_closed" }
func (Proposed) Kind() string      { return "proposed" }
func (Spawn) Kind() string         { return "spawn" }

// EndMembers is how the members of a group end that is closed.
type EndMembers string

// The ways.
const (
	LetMembers    EndMembers = ""       // they go on
	StopMembers   EndMembers = "stop"   // each saves first
	CancelMembers EndMembers = "cancel" // at once
)

// Facts about groups.
type (
	// GroupGranted: it holds so much, or, where Asking says for what, waits for approval first. Budget is what it gets
	// where it has none of its own and limits want one.
	GroupGranted struct {
		Group  string                  `json:"group"`
		Worst  money.Amount            `json:"worst,omitzero"`
		Budget *money.Amount           `json:"budget,omitempty"`
		Asking *budget.PendingApproval `json:"asking,omitempty"`
	}
	// GroupEnded: no more members begin.
	GroupEnded struct {
		Group   string     `json:"group"`
		Why     string     `json:"why"`
		Detail  string     `json:"detail,omitempty"`
		Members EndMembers `json:"members,omitempty"`
	}
	// MembersEnding: the members of one that gets no more are ended, or end otherwise.
	MembersEnding struct {
		Group   string     `json:"group"`
		Members EndMembers `json:"members"`
	}
	// GroupFinished: all of its members are over.
	GroupFinished struct {
		Group string `json:"group"`
		Why   string `json:"why,omitempty"` // "": GroupEnded said it
	}
	// GroupWaits: a member may not begin yet, and why.
	GroupWaits struct {
		Group  string `json:"group"`
		Why    string `json:"why"`
		Detail string `json:"detail,omitempty"`
	}
)

func (GroupGranted) Fact() string  { return "group_granted" }
func (GroupEnded) Fact() string    { return "group_ended" }
func (MembersEnding) Fact() string { return "members_ending" }
func (GroupFinished) Fact() string { return "group_finished" }
func (GroupWaits) Fact() string    { return "group_waits" }

func init() {
	reads[GroupGranted]()
	reads[GroupEnded]()
	reads[GroupFinished]()
	reads[MembersEnding]()
	reads[GroupWaits]()
}

// GroupPhase is where a group stands.
//
//	GroupAwaits ──> GroupOpen ──> GroupEnding ──> GroupOver
//	     │              └────────────────────────────^
//	     └────────────────────────^
type GroupPhase string

// The phases of a group.
const (
	GroupAwaits GroupPhase = "awaits_approval"
	GroupOpen   GroupPhase = "open"
	GroupEnding GroupPhase = "ending" // it gets no more members; those that it has go on, or are being ended
	GroupOver   GroupPhase = "over"   // so are its members
)

// NextGroup are the moves that a group may make.
var NextGroup = map[GroupPhase][]GroupPhase{
	"":          {GroupAwaits, GroupOpen},
	GroupAwaits: {GroupOpen, GroupEnding},
	GroupOpen:   {GroupEnding, GroupOver},
	GroupEnding: {GroupOver},
}

// Group is a group as a snapshot keeps it.
type Group struct {
	Name     string       `json:"name"`
	Tenant   string       `json:"tenant,omitempty"`
	By       string       `json:"by,omitempty"`
	Terms    GroupTerms   `json:"terms"`
	Worst    money.Amount `json:"worst"` // that it can cost: grace and minimum charges included
	Phase    GroupPhase   `json:"phase"`
	Why      string       `json:"why,omitempty"`
	Detail   string       `json:"detail,omitempty"`
	Ends     EndMembers   `json:"ends,omitempty"` // how its members are being ended
	Opened   time.Time    `json:"opened"`
	Finished time.Time    `json:"finished,omitzero"`
	Event    uint64       `json:"event,omitempty"` // number of its opening in the log
	Approval *Approval    `json:"approval,omitempty"`
	Waits    []Dependency `json:"waits,omitempty"` // what is not over yet
	Began    int          `json:"began,omitempty"` // how many members have begun
	Open     int          `json:"open,omitempty"`  // how many of them are not over
	Ended    Outcomes     `json:"ended,omitzero"`
	Archived money.Amount `json:"archived,omitzero"` // what archived members have cost
	Study    *Study       `json:"study,omitempty"`   // nil: it is no study
	// Stages are those of a pipeline by their positions, and Begun the positions of those whose jobs have begun, in the
	// order in which they did.
	Stages []groups.Stage `json:"stages,omitempty"`
	Begun  []int          `json:"begun,omitempty"`
	// Version is the number of the model that a pipeline with a stage that deploys makes, from 1; 0: it has none.
	Version int `json:"version,omitempty"`
	// Schedule is how a schedule stands; nil: it is none.
	Schedule *Schedule `json:"schedule,omitempty"`
}

// Outcomes are how many members have ended how.
type Outcomes struct {
	Succeeded int `json:"succeeded,omitempty"`
	Failed    int `json:"failed,omitempty"`
	Stopped   int `json:"stopped,omitempty"`
	Cancelled int `json:"cancelled,omitempty"`
}

func (o *Outcomes) add(s Status, n int) {
	switch s {
	case Succeeded:
		o.Succeeded += n
	case Failed:
		o.Failed += n
	case Stopped:
		o.Stopped += n
	case Cancelled:
		o.Cancelled += n
	case Held, Queued, Running, Paused:
	}
}

// User is who opened it.
func (g *Group) User() string { return cmp.Or(g.By, Owner) }

// Closed reports whether no more members begin.
func (g *Group) Closed() bool { return g.Phase == GroupEnding || g.Phase == GroupOver }

// Succeeded reports whether it is over and all of its members have succeeded. A study has succeeded where it was not
// cancelled and has found anything.
func (g *Group) Succeeded() bool {
	switch {
	case g.Study != nil:
		return g.Phase == GroupOver && g.Ends != CancelMembers && g.Study.Best(g.Terms.Study.Maximize) >= 0
	case g.Terms.Pipeline != nil:
		return g.Phase == GroupOver && g.stagesSucceeded()
	}
	return g.Phase == GroupOver && g.Ended.Succeeded == g.Members()
}

// Members is how many it has in all, so far as is known.
func (g *Group) Members() int {
	switch g.Terms.Kind {
	case groups.Array:
		return g.Terms.Array.Members
	case groups.Pipeline:
		return len(g.Stages)
	case groups.Study, groups.Schedule, "":
	}
	return g.Began
}

// MemberOf is the name of the member of an array with that index, which GroupIn takes apart.
func MemberOf(group string, index int) string { return group + "." + strconv.Itoa(index) }

// member is the submission of a member; nil where the name is of none.
func (g *Group) member(job string) *JobSubmitted {
	index, found := strings.CutPrefix(job, g.Name+".")
	if g.Terms.Pipeline != nil {
		return g.stageJob(job, index)
	}
	n, err := strconv.Atoi(index)
	if !found || err != nil || g.Terms.Member == nil {
		return nil
	}
	b := &JobSubmitted{Job: job, Terms: *g.Terms.Member}
	b.Terms.Index = n
	return g.owns(b, index)
}

// owns makes a submission one of a member of the group.
func (g *Group) owns(b *JobSubmitted, part string) *JobSubmitted {
	b.Terms.Group = g.Name
	b.Terms.Owner.Group, b.Terms.Owner.Part = g.Name, part
	if g.Terms.HasBudget {
		b.Terms.Parent = g.Name
	}
	return b
}

// Index is that of the n-th member, from 0.
func (g *Group) Index(n int) int {
	if g.Terms.Kind == groups.Array {
		return g.Terms.Array.Index(n)
	}
	return n
}

// MemberID is the name of the n-th member, from 0.
func (g *Group) MemberID(n int) string {
	if g.Terms.Pipeline != nil {
		return g.StageID(g.Begun[n])
	}
	return MemberOf(g.Name, g.Index(n))
}

// Member is the submission of the n-th member, from 0.
func (g *Group) Member(n int) *JobSubmitted { return g.member(g.MemberID(n)) }

// ParseGroup says what is wrong with the name of a group.
func ParseGroup(name string, of groups.Kind) error {
	if of.Planned() {
		if name == "" {
			return fmt.Errorf("the %s needs a name", of)
		}
		return nil
	}
	kind, rest, _ := strings.Cut(name, ":")
	if !slices.Contains(groups.Kinds[1:], groups.Kind(kind)) || rest == "" {
		return fmt.Errorf("group %q: write study:NAME, pipeline:NAME or schedule:NAME", name)
	}
	return nil
}

// Group returns the group of that name, or nil.
func (s *State) Group(name string) *Group { return s.groups[name] }

// Groups are all, by name.
func (s *State) Groups() []*Group {
	list := make([]*Group, 0, len(s.groups))
	for _, g := range s.groups {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *Group) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// OpenMembers are the members of a group that are not over, in the order of their submission. It is the state's own.
func (s *State) OpenMembers(name string) []*Job { return s.members[name] }

// MinimumCharge is the longest time that an offer for sale bills even where a machine ran
// for less.
func (s *State) MinimumCharge() (d time.Duration) {
	for _, l := range s.sale {
		d = max(d, l.Offer().Billing.Minimum)
	}
	return d
}

// submission is what an event says of a new job.
func (s *State) submission(e *Event, job string) *JobSubmitted {
	switch b := e.Body.(type) {
	case Spawn:
		if i := slices.IndexFunc(b.Parts, func(p JobSubmitted) bool { return p.Job == job }); i >= 0 {
			return &b.Parts[i]
		}
	case Proposed:
		if m := s.groups[b.Group].member(job); m != nil {
			return m
		}
	case JobSubmitted:
		return &b
	}
	panic("state: event " + e.Body.Kind() + " does not submit job " + job)
}

func reviewed(was *Approval, e *Event, b JobReviewed) *Approval {
	return &Approval{PendingApproval: was.PendingApproval, At: e.At, By: cmp.Or(UserOf(e.Actor), Owner),
		Approved: b.Approved, Reason: b.Reason}
}

// letIn is the approval of a job that may run from now on; nil where its new terms need none.
func letIn(was *Approval, e *Event) *Approval {
	b, ok := e.Body.(JobReviewed)
	if !ok {
		return nil
	}
	return reviewed(was, e, b)
}
