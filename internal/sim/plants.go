package sim

// Fault breaks one thing on purpose, to prove which property notices.
type Fault string

// The faults that can be planted in the world around the core.
const (
	FaultNone       Fault = ""
	FaultNoKey      Fault = "no-idempotency-key" // the provider rents anew for a key it has seen
	FaultNoSweep    Fault = "no-sweep"           // the inventory is never compared
	FaultNoRedo     Fault = "no-redo"            // after a restart nothing that was asked for is asked again
	FaultLostFact   Fault = "lost-fact"          // a restart passes over the first fact of an event
	FaultDropBill   Fault = "drop-posting"       // one posting is lost
	FaultDeaf       Fault = "deaf-agent"         // agents do not save when the machine is about to go
	FaultTwiceHeard Fault = "heard-twice"        // a repeated message counts again

	FaultLateHeard   Fault = "heard-late"       // a message that was overtaken counts again
	FaultNoFence     Fault = "no-fence"         // a stale attempt may still publish
	FaultNoTick      Fault = "no-tick"          // time alone never wakes the server
	FaultMute        Fault = "mute"             // programs report no metric
	FaultMerge       Fault = "merged-metric"    // of the values between two reports the newest is told
	FaultBusy        Fault = "always-busy"      // a machine that does nothing looks busy
	FaultDeafProgram Fault = "deaf-program"     // no program takes notice of the signal to save and end
	FaultSlowFirm    Fault = "slow-on-demand"   // an on-demand machine takes an hour to be granted
	FaultDearer      Fault = "dearer"           // the provider bills more than it quotes
	FaultOwner       Fault = "wrong-team"       // a posting is booked on another team
	FaultNoMask      Fault = "no-mask"          // the last words of a program are not masked
	FaultNoOutputs   Fault = "no-outputs"       // nobody hears where outputs are kept
	FaultOrder       Fault = "no-priority"      // jobs are submitted without their priority
	FaultNoMax       Fault = "no-max-price"     // jobs are submitted without their highest price
	FaultUnasked     Fault = "ask-nobody"       // jobs above a threshold are submitted as if they were below
	FaultRetryAll    Fault = "retry-everything" // every exit status looks like one that asks for a retry
	FaultBilledTwice Fault = "orphan-twice"     // an instance that was given up for lost is billed again as nobody's
	FaultFirmInTime  Fault = "no-on-demand"     // nothing on-demand is ever shown to the server
	FaultNoOwner     Fault = "no-incarnation"   // a restored copy takes the machines of the log for its own
	FaultNoLag       Fault = "no-consistency"   // the server does not know that lists lag
	FaultOneSweep    Fault = "one-sweep"        // the list of one provider is taken for that of all
	FaultNoBill      Fault = "empty-bill"       // the bill of an interrupted machine comes without its lines
	FaultProject     Fault = "wrong-project"    // a posting is booked on another project
	FaultNoPause     Fault = "no-pause"         // a pause is answered and never taken in
	FaultOldTerms    Fault = "old-terms"        // a job is taken up again without its new limits
	FaultTwoKeys     Fault = "two-keys"         // a machine that has a key takes another
	FaultUnclean     Fault = "unclean"          // a machine is taken before it is clean
	FaultAnyone      Fault = "any-user"         // a machine that served one user is taken by another's job
	FaultAnyImage    Fault = "any-image"        // a machine is taken whatever image it was rented with
	FaultNoImage     Fault = "no-image"         // a machine is rented without the image of its launch
	FaultWaits       Fault = "waits-for-ever"   // a machine without a task is never given back
	FaultCrowds      Fault = "crowds"           // parts of a machine are given that others have
	FaultEarly       Fault = "seat-early"       // a seat is left before its task is gone
	FaultUnpaid      Fault = "idle-unpaid"      // a posting of a machine without a task is lost
	FaultNoRegister  Fault = "no-registration"  // agents take tasks without a key
	FaultLumps       Fault = "lumped-prices"    // postings say the newest price of a time that had several
	FaultCrowded     Fault = "crowded-array"    // more members of an array are open than may be at once
	FaultHeedless    Fault = "heedless"         // a job begins though what it comes after has failed
	FaultBeyond      Fault = "beyond-the-end"   // trials of a study go on beyond their end
	FaultUnready     Fault = "unready-stage"    // a stage of a pipeline begins before those that it needs
	FaultDoubled     Fault = "made-twice"       // two pipelines of a project make the same at once
	FaultOverlaps    Fault = "overlapping-run"  // a run of a schedule begins though the one before it is not over
	FaultFullHold    Fault = "full-hold"        // a part begins for which its hold has no room

	FaultStaleGroup  Fault = "stale-group"  // groups of a round happen whatever has changed since
	FaultUnpinned    Fault = "unpinned"     // a round moves jobs that the guard has pinned
	FaultTwoDeciders Fault = "two-deciders" // jobs take what is reserved by themselves, also where it is kept for others

	FaultArchiveLost   Fault = "archive-lost"   // the record of an archived job is lost
	FaultArchiveWrong  Fault = "archive-wrong"  // an archived job comes back with another record than its hash says
	FaultArchiveForged Fault = "archive-forged" // an archived job comes back with another record, and its hash
)
