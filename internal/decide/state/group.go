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

// GroupTerms bounds the actions and the spending of a group.
type GroupTerms struct {
	Kind      groups.Kind  `json:"kind,omitempty"`
	Owner     ledger.Owner `json:"owner"`            // the members have the same owner
	Parent    string       `json:"parent,omitempty"` // group whose budget it uses; empty: none, its own limits apply
	Budget    money.Amount `json:"budget,omitzero"`  // maximum budget of all members together
	HasBudget bool         `json:"has_budget,omitempty"`
	// GPUHours and WallClock limit all stages of a pipeline together; 0: no limit. A study's Spec has its own.
	GPUHours  float64       `json:"gpu_hours,omitempty"`
	WallClock time.Duration `json:"wall_clock_ns,omitempty"`
	AtOnce    int           `json:"at_once"`            // maximum number of open members
	Grace     time.Duration `json:"grace_ns,omitempty"` // grace of a member
	Rate      money.Rate    `json:"rate,omitempty"`     // maximum rate of a machine; 0: the highest for sale
	After     []Dependency  `json:"after,omitempty"`    // what must end before a member starts
	// Array and Member describe the members of an array: the same job, each with its index.
	Array  groups.Indexes `json:"array,omitzero"`
	Member *Terms         `json:"member,omitempty"`
	// Study describes the search of a study. Its members are trials: the same job with other parameters.
	Study *study.Spec `json:"study,omitempty"`
	// Pipeline describes how the stages of a pipeline depend on each other, and Stages what each one does. Member
	// has the name and owner of the pipeline.
	Pipeline *pipeline.Spec `json:"pipeline,omitempty"`
	Stages   []Terms        `json:"stages,omitempty"`
	// Schedule describes when a schedule runs, and Run the terms of each run. A run is a group that uses the
	// schedule's budget.
	Schedule *schedule.Spec `json:"schedule,omitempty"`
	Run      *GroupTerms    `json:"run,omitempty"`
}

// Limits returns the wall clock and the GPU-hours of all members together; 0: no limit.
func (t *GroupTerms) Limits() (wall time.Duration, gpuHours float64) {
	if t.Study != nil {
		return t.Study.Wall, t.Study.GPUHours
	}
	return t.WallClock, t.GPUHours
}

// Events about groups.
type (
	// GroupOpened: a user starts an array, a study, a pipeline or a schedule. Spec is the job file of its members.
	GroupOpened struct {
		Group string          `json:"group"`
		Terms GroupTerms      `json:"terms"`
		Spec  json.RawMessage `json:"spec,omitempty"`
		// Specs are the job files of the stages of a pipeline.
		Specs []json.RawMessage `json:"specs,omitempty"`
		// Stored is nil in events of older releases, which stored the content under the group's name.
		Stored *Stored `json:"stored,omitempty"`
	}
	// GroupReviewed: somebody approves or rejects a group that waits for approval.
	GroupReviewed struct {
		Group    string `json:"group"`
		Approved bool   `json:"approved"`
		Reason   string `json:"reason,omitempty"`
	}
	// GroupClosed: neither the group nor groups that use its budget get new members. Existing members continue
	// unless Members says how they end.
	GroupClosed struct {
		Group   string     `json:"group"`
		Members EndMembers `json:"members,omitempty"`
	}
	// Proposed: a planner that saw the group after event Base proposes moves.
	Proposed struct {
		Group string        `json:"group"`
		Base  uint64        `json:"base"`
		Moves []groups.Move `json:"moves,omitempty"`
	}
	// Spawn: parts of a group start, all or none.
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

// EndMembers is how the members of a closed group end.
type EndMembers string

// Ways to end members.
const (
	LetMembers    EndMembers = ""       // they continue
	StopMembers   EndMembers = "stop"   // each saves first
	CancelMembers EndMembers = "cancel" // at once
)

// Facts about groups.
type (
	// GroupGranted: the group holds Worst. If Asking is set, it first waits for that approval. Budget is the budget
	// it gets if it has none and limits require one.
	GroupGranted struct {
		Group  string                  `json:"group"`
		Worst  money.Amount            `json:"worst,omitzero"`
		Budget *money.Amount           `json:"budget,omitempty"`
		Asking *budget.PendingApproval `json:"asking,omitempty"`
	}
	// GroupEnded: no more members start.
	GroupEnded struct {
		Group   string     `json:"group"`
		Why     string     `json:"why"`
		Detail  string     `json:"detail,omitempty"`
		Members EndMembers `json:"members,omitempty"`
	}
	// MembersEnding: the members of a closed group are ended, or end in another way than before.
	MembersEnding struct {
		Group   string     `json:"group"`
		Members EndMembers `json:"members"`
	}
	// GroupFinished: all members have ended.
	GroupFinished struct {
		Group string `json:"group"`
		Why   string `json:"why,omitempty"` // empty: as in GroupEnded
	}
	// GroupWaits: a member may not start yet, and why.
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

// GroupPhase is the state of a group.
//
//	GroupAwaits ──> GroupOpen ──> GroupEnding ──> GroupOver
//	     │              └────────────────────────────^
//	     └────────────────────────^
type GroupPhase string

// Phases of a group.
const (
	GroupAwaits GroupPhase = "awaits_approval"
	GroupOpen   GroupPhase = "open"
	GroupEnding GroupPhase = "ending" // no new members; existing ones continue or are being ended
	GroupOver   GroupPhase = "over"   // all members have ended
)

// NextGroup are the transitions that a group may make.
var NextGroup = map[GroupPhase][]GroupPhase{
	"":          {GroupAwaits, GroupOpen},
	GroupAwaits: {GroupOpen, GroupEnding},
	GroupOpen:   {GroupEnding, GroupOver},
	GroupEnding: {GroupOver},
}

// Group is the form of a group in a snapshot, and the group itself.
type Group struct {
	Name     string       `json:"name"`
	Tenant   string       `json:"tenant,omitempty"`
	By       string       `json:"by,omitempty"`
	Terms    GroupTerms   `json:"terms"`
	Worst    money.Amount `json:"worst"` // maximum cost, including grace and minimum charges
	Phase    GroupPhase   `json:"phase"`
	Why      string       `json:"why,omitempty"`
	Detail   string       `json:"detail,omitempty"`
	Ends     EndMembers   `json:"ends,omitempty"` // how its members are being ended
	Opened   time.Time    `json:"opened"`
	Finished time.Time    `json:"finished,omitzero"`
	Event    uint64       `json:"event,omitempty"` // sequence number of the event that opened it
	Stored   *Stored      `json:"stored,omitempty"`
	Approval *Approval    `json:"approval,omitempty"`
	Waits    []Dependency `json:"waits,omitempty"` // dependencies that have not ended yet
	Began    int          `json:"began,omitempty"` // members started
	Open     int          `json:"open,omitempty"`  // members that have not ended
	Ended    Outcomes     `json:"ended,omitzero"`
	Archived money.Amount `json:"archived,omitzero"` // cost of archived members and runs
	// Used is the GPU time of archived members.
	Used  time.Duration `json:"used_ns,omitempty"`
	Study *Study        `json:"study,omitempty"` // nil unless it is a study
	// Stages are those of a pipeline by position. Begun lists the positions of the stages whose jobs have started,
	// in that order.
	Stages []groups.Stage `json:"stages,omitempty"`
	Begun  []int          `json:"begun,omitempty"`
	// Version is the number, from 1, of the model that a pipeline with a deploying stage makes; 0: it makes none.
	Version int `json:"version,omitempty"`
	// Schedule is the state of a schedule; nil unless it is one.
	Schedule *Schedule `json:"schedule,omitempty"`
}

// Outcomes counts ended members by final state.
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

// User returns the user who opened the group.
func (g *Group) User() string { return cmp.Or(g.By, Owner) }

// Closed reports whether no more members start.
func (g *Group) Closed() bool { return g.Phase == GroupEnding || g.Phase == GroupOver }

// Succeeded reports whether the group has ended and all its members succeeded. A study succeeds if it was not
// cancelled and found a value.
func (g *Group) Succeeded() bool {
	switch {
	case g.Study != nil:
		return g.Phase == GroupOver && g.Ends != CancelMembers && g.Study.Best(g.Terms.Study) >= 0
	case g.Terms.Pipeline != nil:
		return g.Phase == GroupOver && g.stagesSucceeded()
	}
	return g.Phase == GroupOver && g.Ended.Succeeded == g.Members()
}

// Members returns the total number of members, as far as it is known.
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

// MemberOf returns the ID of the array member with the given index.
func MemberOf(group string, index int) string { return group + "." + strconv.Itoa(index) }

// member returns the submission of a member, or nil if job is not one.
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

// owns turns a submission into one of a member of the group.
func (g *Group) owns(b *JobSubmitted, part string) *JobSubmitted {
	b.Terms.Group = g.Name
	b.Terms.Owner.Group, b.Terms.Owner.Part = g.Name, part
	if g.Terms.HasBudget {
		b.Terms.Parent = g.Name
	}
	return b
}

// Index returns the index of the n-th member, from 0.
func (g *Group) Index(n int) int {
	if g.Terms.Kind == groups.Array {
		return g.Terms.Array.Index(n)
	}
	return n
}

// MemberID returns the job ID of the n-th member, from 0.
func (g *Group) MemberID(n int) string {
	if g.Terms.Pipeline != nil {
		return g.StageID(g.Begun[n])
	}
	return MemberOf(g.Name, g.Index(n))
}

// Member returns the submission of the n-th member, from 0.
func (g *Group) Member(n int) *JobSubmitted { return g.member(g.MemberID(n)) }

// ParseGroup returns an error if the name of a group is invalid.
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

// Group returns the group with the given name, or nil.
func (s *State) Group(name string) *Group { return s.groups[name] }

// Groups returns all groups, sorted by name.
func (s *State) Groups() []*Group {
	list := make([]*Group, 0, len(s.groups))
	for _, g := range s.groups {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *Group) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// OpenMembers returns the members of a group that have not ended, in the order of submission. Callers must not
// change the slice.
func (s *State) OpenMembers(name string) []*Job { return s.members[name] }

// MinimumCharge returns the longest time that any offer for sale bills even if a machine runs for less.
func (s *State) MinimumCharge() (d time.Duration) {
	for _, l := range s.sale {
		d = max(d, l.Offer().Billing.Minimum)
	}
	return d
}

// submission returns the event's submission of a new job.
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

// letIn returns the approval of a job that may run from now on, or nil if its new terms need none.
func letIn(was *Approval, e *Event) *Approval {
	b, ok := e.Body.(JobReviewed)
	if !ok {
		return nil
	}
	return reviewed(was, e, b)
}
