package spec

import "reflect"

// meaning describes a field for the schema and the reference.
type meaning struct {
	doc   string
	later string // the feature that scrimp lacks to honour the field; empty if it honours it
	fix   string // what to do until then
	// honoured is the only value that a run honours already.
	honoured string
	// planless means that no plan depends on the field.
	planless bool
	// unranked means that a run honours the field and plan --catalog does not. It refuses the field.
	unranked bool
}

// refused describes when a run refuses the field; empty if never.
func (m meaning) refused() string {
	switch {
	case m.unranked:
		return "`plan --catalog` refuses it."
	case m.later == "":
		return ""
	case m.honoured != "":
		return "A run with another value than `" + m.honoured + "` is refused until scrimp has " + m.later + "."
	}
	return "A run with it is refused until scrimp has " + m.later + "."
}

// meaningOf returns the meaning of a field of t.
func meaningOf(t reflect.Type, f reflect.StructField) meaning {
	return meanings[t.Name()+"."+fieldName(f)]
}

// meanings holds the meanings of all fields, by type and name in the file.
var meanings = map[string]meaning{
	"Job.name": {doc: "What the job is called: small letters, digits and dashes, at most 40. The file's " +
		"folder gives the name where the file does not."},
	"Job.kind": {doc: "What the job is for: costs are told apart by it. When and where it runs goes by priority, " +
		"deadline and budget, whatever the kind; plan --catalog proposes no early stopping for inference."},
	"Job.session": {doc: "Instead of a program: a terminal that scrimp shell attaches (shell), or Jupyter (notebook). " +
		"Its work folder is its checkpoint, and it ends as stopped, so that it can be resumed with its files."},
	"Job.command": {doc: "The program, for sh -c. A list is run without a shell."},
	"Job.args":    {doc: "The program and its arguments without a shell, instead of command."},
	"Job.setup": {doc: "Shell commands that run on each machine before the program; where they fail the " +
		"program is not started. They may take two hours beside what the machine needs to start."},
	"Job.workdir": {doc: "Folder that is copied to the machine, relative to the job file. The job file's own " +
		"unless set. .scrimpignore leaves files out."},
	"Job.image": {doc: "Container image that the program runs in, as docker pull takes it. Only engines whose machines " +
		"are containers take it: scrimp market shows them, and a job that names one runs on no other. The engine's own " +
		"unless set."},
	"Job.env": {doc: "Environment of the program. It is kept in the log as it stands: a password belongs " +
		"under secrets."},
	"Job.secrets": {doc: "Names of environment variables whose values come from the shell that submits. " +
		"The values are never in the log."},
	"Job.inherit": {doc: "Names of environment variables that a machine which shares the submitter's files (the local " +
		"market) has from the shell that submits, besides PATH, VIRTUAL_ENV and CONDA_PREFIX. The values are never in the " +
		"log. Other machines get none of them and say so in the job's output; a server that is logged in to refuses them."},
	"Job.data": {doc: "Inputs: what they are, where they lie and how large they are. Plans and runs count what each " +
		"machine in another region than region pays for reading them once, and leave out machines where that is " +
		"unknown. The program reads an input without a name itself."},
	"Job.outputs": {doc: "Folders below the work folder that are kept after the machine is terminated, also " +
		"after a failure. '*' is every file that the program makes or changes in its work folder, but for its " +
		"checkpoints and caches: the newest, up to 1 GiB. A command without a job file has that."},
	"Job.resources": {doc: "What a machine must have."},
	"Job.any_of": {doc: "Alternatives: other resources with other arguments, such as a smaller machine with mixed " +
		"precision; or engines, and zones of them, that the job is held to: [lab, slurm/gpu, local]."},
	"Job.ladder": {doc: "What is tried first, and what next, when there is no capacity or it fails too " +
		"often. Where the deadline leaves no slack, any of them."},
	"Job.nodes": {doc: "Machines that start together, 4 or 2..4. The program begins on each, with the " +
		"variables of torchrun and Slurm. Of a range as few as the deadline allows; work.time is that on its upper end, " +
		"and the speed is taken to grow with the number."},
	"Job.max_price": {doc: "Highest price of a machine's hour; of each where there are several."},
	"Job.model": {doc: "Shape of the model: plan --catalog and check estimate time, memory and cost by it, and what is " +
		"measured of a run teaches estimates of that shape. A run is given no machine whose memory does not hold it, where " +
		"resources leave open which."},
	"Job.work": {doc: "How much there is to do, where it is known. Without steps or time the deadline can " +
		"only be guarded, not planned."},
	"Job.metric": {doc: "What the run is judged by. Where it is not a finite number the run is stopped " +
		"as diverged."},
	"Job.checkpoint": {doc: "Where the program saves and what is kept. Without a folder every attempt begins " +
		"again from nothing."},
	"Job.progress": {doc: "How an unmodified program shows its progress. One value is the pattern."},
	"Job.priority": {doc: "Critical jobs go first and never run on spot; low ones go last. A critical job without room " +
		"preempts the job of lower priority whose preemption costs least."},
	"Job.preemptible": {doc: "Whether a critical job may make this one save, leave its machine and wait. Sessions and " +
		"critical jobs stay in any case."},
	"Job.deadline": {doc: "When it must be done: a span from the submission on, or a time. A time " +
		"without a zone is in your computer's zone; the API refuses it."},
	"Job.window": {doc: "Hours of the day in which it may run, UTC unless an offset follows. When they end it saves and " +
		"gives its machine back, and goes on when they begin again. The deadline counts these hours only. A job that saves " +
		"nothing starts only where it can finish.", unranked: true},
	"Job.budget": {doc: "The most it may use; what is reached first stops it, with a checkpoint. One " +
		"value is dollars."},
	"Job.first":   {doc: "Which of the two is kept where both cannot be."},
	"Job.promise": {doc: "Share of such jobs that must be in time, between 0 and 1; 99% is read as 0.99."},
	"Job.retry": {doc: "Which failures of the program are tried again. Interruptions always are, and " +
		"do not count."},
	"Job.signal": {doc: "Sent to the program's process group to ask for a save and an end: TERM, INT, HUP, " +
		"USR1 or USR2. @90s is how long before the machine ends it is sent, in real time; at once without it."},
	"Job.grace": {doc: "Between the signal and the kill, in real time, 1h at most. The budget keeps back what that " +
		"costs, and where it is spent the machine is given back."},
	"Job.idle": {doc: "Stop when the machine is idle for so long, in real time. Never unless set. Of a job that asks " +
		"for GPUs all of them are at 0 %, whatever the processors do; of another, and where nobody knows of the GPUs, the " +
		"program uses less than 0.05 cores. Of a session neither is in use, nothing is typed, no kernel is busy and no " +
		"forwarded port has a connection."},
	"Job.notify": {doc: "Who hears of the job's end, of a deadline that it will miss and of a budget that is too small: " +
		"a webhook, e-mail addresses, or both. A URL alone is the webhook."},
	"Notify.webhook": {doc: "URL that gets a POST with id, job, event, state and why (an incoming webhook of Slack, " +
		"Google Chat, Teams, or Discord's with /slack at its end, gets a line of text), again until it is accepted; the " +
		"id stays. $NAME of secrets is filled in, so that a token need not stand here."},
	"Notify.email": {doc: "Addresses that get a message each, through the mail server that scrimp serve --smtp names. A " +
		"message that is sent again keeps its Message-ID."},
	"Notify.on": {doc: "Events to report; done and failed unless set. done: the job succeeds, or is stopped or " +
		"cancelled. failed: it fails. late: the median of two forecasts in a row lies beyond the deadline, or the deadline " +
		"passes; once per deadline. over_budget: a budget or a limit stops the job, or a budget ends most simulated runs " +
		"of two forecasts in a row; once per budget."},
	"Job.compat": {doc: "System whose variables the program reads besides scrimp's own. Slurm's and torchrun's are " +
		"set for every job (docs/agent.md).",
		later: "the variables of SkyPilot, dstack and SageMaker", honoured: "slurm", planless: true,
		fix: "leave it out, and set what the program reads under env, from SCRIMP_NODE and the like"},
	"Job.team":          {doc: "Whose cost it is: costs are listed, and budgets are set, by it."},
	"Job.project":       {doc: "Whose cost it is: costs are listed, and budgets are set, by it."},
	"Job.environment":   {doc: "Whose cost it is: it stands on every posting of the ledger."},
	"Job.model_version": {doc: "Whose cost it is: it stands on every posting of the ledger."},
	"Job.tags": {doc: "On every posting of the ledger: costs are listed by tag:NAME, and submissions may be held to " +
		"name one (scrimp budgets)."},

	"Data.name": {doc: "With a name, scrimp brings the input to the machine before the program starts, and the program " +
		"finds it in SCRIMP_DATA_NAME. Lower-case letters, digits and underscores."},
	"Data.path":   {doc: "Path or URL."},
	"Data.size":   {doc: "How much it is."},
	"Data.region": {doc: "Where it lies."},
	"Data.stream": {doc: "True: the program starts at once and reads the input over HTTP while it arrives; " +
		"SCRIMP_DATA_NAME is then the address of a listing."},

	"Resources.cpus": {doc: "Processors: exactly 4, at least 4+, or from 4..16. Of a machine that jobs share, the part " +
		"that the job has counts."},
	"Resources.memory": {doc: "Memory with its unit: exactly 8GiB, at least 8GiB+, or from 8..64GiB; of a shared " +
		"machine the job's part."},
	"Resources.disk": {doc: "Disk with its unit: 100GiB, 100GiB+ or 100..500GiB.",
		later: "disks that are rented by size", fix: "leave it out: a machine has the disk that its engine gives it"},
	"Resources.accelerator": {doc: "Kind and count: one H100, exactly H100:8, at least H100:2+, or from H100:1..8; " +
		"any:2 is two GPUs of any kind. " +
		"Where no offer has it scrimp refuses the job; with --force the job waits until one does."},
	"Resources.zones":    {doc: "Zones or regions it may run in. All unless set."},
	"Resources.capacity": {doc: "Kinds of capacity it may use. All unless set; any is all."},

	"Variant.name": {doc: "Of the alternative; each has another."},
	"Variant.engine": {doc: "Engine, or engine/zone, that it is held to; of Slurm a zone is a partition. An entry that " +
		"says nothing else is a place for the job's own resources, and for alternatives that name no engine."},
	"Variant.image":      {doc: "Instead of the job's."},
	"Variant.resources":  {doc: "Instead of the job's."},
	"Variant.env":        {doc: "Besides the job's."},
	"Variant.args":       {doc: "Added to the job's arguments."},
	"Variant.throughput": {doc: "Work per second against the job's own resources; 1.6x is read as 1.6."},

	"Rung.capacity":  {doc: "Kind of capacity."},
	"Rung.zones":     {doc: "Zones or regions."},
	"Rung.use":       {doc: "Name of an alternative of any_of; the job's own resources unless set."},
	"Rung.max_price": {doc: "Highest price of a machine's hour on this rung."},
	"Rung.for": {doc: "How long to try before the next rung; and how long this one rests after " +
		"its failures (30m unless set)."},
	"Rung.failures": {doc: "Losses and refusals here until the job leaves this rung alone for a while and " +
		"tries the next."},

	"Model.config":     {doc: "A config.json in the work folder, in Hugging Face's form."},
	"Model.parameters": {doc: "How many weights; K, M, B and T are read as thousand to trillion."},
	"Model.layers":     {doc: "How many."},
	"Model.hidden":     {doc: "Width."},
	"Model.shape": {doc: "The shape in a line, as scrimp estimate --model takes it. Made from config at the " +
		"submission where that is a file, so that the run can be compared with later ones."},
	"Model.sequence":  {doc: "Tokens a sample; 2048 of a transformer unless set."},
	"Model.batch":     {doc: "Samples that an accelerator takes in at a time; what fits unless set."},
	"Model.precision": {doc: "Format of the matrix products; bf16 unless this or the program says another."},
	"Model.tuning": {doc: "Which weights are trained: all of them unless set, or small matrices beside weights " +
		"that are frozen in 16 (lora) or 4 bits (qlora)."},
	"Model.features": {doc: "Columns of the table that boosted trees are grown on; 12 unless set."},
	"Model.sharding": {doc: "What replicas share out: the optimiser (zero1), gradients too (zero2), weights too (zero3, " +
		"fsdp). What the command or a file of its launcher says unless set, and refused where that says another. The " +
		"program finds it in SCRIMP_SHARDING."},
	"Model.tensor_parallel": {doc: "Over how many accelerators each layer is cut; likewise, in SCRIMP_TENSOR_PARALLEL. " +
		"Times pipeline_parallel it must divide the accelerators."},
	"Model.pipeline_parallel": {doc: "Into how many stages the layers are cut; likewise, in SCRIMP_PIPELINE_PARALLEL."},
	"Model.activation_checkpointing": {doc: "What of the forward pass is computed again; likewise, in " +
		"SCRIMP_ACTIVATION_CHECKPOINTING. Estimates assume full for qlora unless set, as PEFT does."},

	"Work.steps": {doc: "Optimiser steps, or boosted trees; K, M, B and T are read as thousand to trillion."},
	"Work.epochs": {doc: "Passes over the data, for plan --catalog and check. A run goes by steps or time, or by " +
		"the total that the program reports."},
	"Work.samples": {doc: "Training samples, for the same; with steps, what a run measures is told in samples a second."},
	"Work.tokens":  {doc: "Training tokens, for the same; with steps, what a run measures is told in tokens a second."},
	"Work.time": {doc: "Expected time of an uninterrupted run on a machine of speed 1, with the lower end of a range of " +
		"processors or accelerators."},
	"Work.parallel": {doc: "Share of that time that more processors of a range make faster, or more accelerators where " +
		"the job asks for them, between 0 and 1. With 0.9, 16 of cpus: 4..16 are 3.1 times as fast as 4. The speed of " +
		"an offer is then that on the lower end. Measured runs say it where it is left out and they had several " +
		"numbers; without either, more count as no faster."},

	"Metric.name":      {doc: "As the program reports it."},
	"Metric.goal":      {doc: "Which way is better."},
	"Metric.target":    {doc: "Reached is a success, and the rest of the money comes back."},
	"Metric.patience":  {doc: "Steps without improvement that end the run as a plateau."},
	"Metric.min_delta": {doc: "The least change that counts as improvement."},

	"Checkpoint.dir": {doc: "Folder the program saves to, below the work folder or absolute. The program " +
		"finds it in SCRIMP_CHECKPOINT_DIR too."},
	"Checkpoint.interval": {doc: "How often to save, in real time; auto follows what a save costs and how often " +
		"machines are interrupted."},
	"Checkpoint.keep":      {doc: "Newest versions that are kept."},
	"Checkpoint.best":      {doc: "Keep the best by the metric too."},
	"Checkpoint.every_nth": {doc: "Keep every Nth version too."},
	"Checkpoint.store": {doc: "Where they are kept: file:///…, s3://…, gs://… or azblob://…. The server's data " +
		"folder unless set."},
	"Checkpoint.ranks": {doc: "Whose folder a checkpoint is, of a job on several machines: that of the first, which " +
		"every machine gets back; or of all, of which each gets its own part back, on as many " +
		"machines as before: nodes is one number then."},
	"Checkpoint.given": {doc: "The folder brings a checkpoint along, from which the program may begin: how long the run " +
		"takes is then no measure of all the work. scrimp run sets it where it finds files there."},
	"Checkpoint.move_time": {doc: "What taking the newest one to another region adds to a restart. " +
		"Zones of several regions are weighed with it."},
	"Checkpoint.move_cost": {doc: "What that costs: weighed against a cheaper region, and counted by simulate."},

	"Progress.pattern": {doc: "Regular expression (RE2) that is searched in each line of output. The groups step, " +
		"total, epoch and epochs (how many there are) have a meaning; any other named group is a metric."},
	"Progress.saved": {doc: "Regular expression of the line that says a save is complete; the group step is optional."},
	"Progress.file":  {doc: "File of JSON lines such as {\"step\":12,\"loss\":2.3}, below the work folder."},

	"Budget.dollars":    {doc: "In all, over every attempt."},
	"Budget.gpu_hours":  {doc: "Hours times accelerators, in all."},
	"Budget.wall_clock": {doc: "From the first machine on."},

	"Retry.max": {doc: "How often at most."},
	"Retry.codes": {doc: "Exit statuses that are tried again, 1 to 255. 75 always is; 137 (killed, most often for " +
		"memory) only where it is listed."},
}
