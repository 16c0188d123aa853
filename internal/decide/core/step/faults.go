package step

// Faults makes a machine break its own rules, so that a test can prove that the simulator notices. A server sets none.
type Faults struct {
	LetsIn   func(*Refusal) bool   // reports whether to ignore a refusal
	Unasked  bool                  // no approval is required
	Twice    bool                  // members count in addition to their group's hold
	Keeps    bool                  // a closed group keeps its hold
	Spares   func(job string) bool // reports whether a job continues although a limit of it is spent
	TwoKeys  bool                  // a machine with a key accepts another
	Unclean  bool                  // a machine is used before it is clean
	Anyone   bool                  // a job may take a machine that served another user
	Images   bool                  // a machine is used whatever image it runs
	Crowds   bool                  // portions of a machine are given twice
	Early    bool                  // a seat is freed before its task is gone
	Waits    bool                  // an idle machine is never terminated
	Stale    bool                  // the groups of a round are not checked against the current state
	Unpins   bool                  // rounds move pinned jobs
	Crowded  bool                  // more members of a group are open than allowed
	Lumps    bool                  // a time with several prices is posted at the newest price
	Heedless bool                  // jobs start although their dependencies have failed
	Endless  bool                  // the members of a group go on when its GPU-hours are used
	Unready  bool                  // stages of a pipeline start before the stages that they need
	Doubled  bool                  // two pipelines of a project make the same outputs at once
	Trusts   bool                  // a stage that deploys is reused while what is in place is unknown
	Overlaps bool                  // a run of a schedule starts before the previous one has ended
	// Unreserved: trials of a study's proxy use what is reserved for promoted trials.
	Unreserved bool
	Beyond     bool // trials of a study continue beyond their end
	Hasty      bool // jobs are preempted before they have had their minimum run
	Costly     bool // jobs are preempted whatever that costs and saves
	Restless   bool // running jobs move to shared machines whatever that costs and saves
	Unkept     bool // a part is not kept for the job that leaves its machine for it
	Rivals     bool // a preempted job may take its seat again before the critical job has it
	Seizes     bool // jobs take reserved machines by themselves, even if those are kept for others
	Hoards     bool // a gang keeps some of its machines however long the others do not come
	Burns      bool // machines start although they exceed a limit of dollars an hour
	Passes     bool // under a limit of dollars an hour, smaller jobs pass a job for ever
	Favours    bool // the first team that has a share counts as if it had spent nothing
	Flat       bool // teams share the queue without their weights
}

// Break sets the faults.
func (c *Context) Break(f Faults) { c.Faults = f }
