package spec

import "reflect"

// meaning is what a field means, as the schema and the reference say it.
type meaning struct {
	doc   string
	later string // why this release keeps the field and does not use it
}

// meaningOf is the meaning of a field of t.
func meaningOf(t reflect.Type, f reflect.StructField) meaning {
	return meanings[t.Name()+"."+fieldName(f)]
}

// meanings are those of all fields, by type and name in the file.
var meanings = map[string]meaning{
	"Job.name": {doc: "What the job is called: small letters, digits and dashes, at most 40. The file's " +
		"folder gives the name where the file does not."},
	"Job.kind":    {doc: "What the job is for.", later: "every kind is scheduled alike"},
	"Job.command": {doc: "The program, for sh -c. A list is run without a shell."},
	"Job.args":    {doc: "The program and its arguments without a shell, instead of command."},
	"Job.setup": {doc: "Shell commands that run on each machine before the program; where they fail the " +
		"program is not started."},
	"Job.workdir": {doc: "Folder that is copied to the machine, relative to the job file. The job file's own " +
		"unless set. .scrimpignore leaves files out."},
	"Job.env": {doc: "Environment of the program. It is kept in the log as it stands: a password belongs " +
		"under secrets."},
	"Job.secrets": {doc: "Names of environment variables whose values come from the shell that submits. " +
		"The values are never in the log."},
	"Job.data": {doc: "Inputs, for planning transfers.", later: "transfers are not planned"},
	"Job.outputs": {doc: "Folders below the work folder that are kept after the machine is gone, also " +
		"after a failure."},
	"Job.resources": {doc: "What a machine must have."},
	"Job.any_of": {doc: "Alternatives: other resources with other arguments, such as a smaller machine with " +
		"mixed precision."},
	"Job.ladder": {doc: "What is tried first, and what next, when nothing is to be had or it fails too " +
		"often. Where the deadline leaves no slack, any of them."},
	"Job.nodes": {doc: "Machines that start together.",
		later: "plans count it, and a run of several machines is refused"},
	"Job.max_price": {doc: "Highest price of a machine's hour."},
	"Job.model": {doc: "Shape of the model, for estimates.",
		later: "it is for plan --catalog, check and estimates; a run is not scheduled by it"},
	"Job.work": {doc: "How much there is to do, where it is known. Without steps or time the deadline can " +
		"only be guarded, not planned."},
	"Job.metric": {doc: "What the run is judged by. Where it is not a finite number the run is stopped " +
		"as diverged."},
	"Job.checkpoint": {doc: "Where the program saves and what is kept. Without a folder every attempt begins " +
		"again from nothing."},
	"Job.progress": {doc: "How an unmodified program shows its progress. One value is the pattern."},
	"Job.priority": {doc: "Critical jobs go first and never run on spot; low ones go last."},
	"Job.deadline": {doc: "When it must be done, market time: a time with its zone, or a span from the " +
		"submission on."},
	"Job.window": {doc: "Hours of the day in which it may run, UTC unless an offset follows.",
		later: "the job runs at any hour"},
	"Job.budget": {doc: "The most it may use; what is reached first stops it, with a checkpoint. One " +
		"value is dollars."},
	"Job.first":   {doc: "Which of the two is kept where both cannot be."},
	"Job.promise": {doc: "Share of such jobs that must be in time, between 0 and 1; 99% is read as 0.99."},
	"Job.retry": {doc: "Which failures of the program are tried again. Interruptions always are, and " +
		"do not count."},
	"Job.signal": {doc: "Sent to the program's process group to ask for a save and an end: TERM, INT, HUP, " +
		"USR1 or USR2. @90s is how long before the machine goes it is sent, wall time; at once without it."},
	"Job.grace": {doc: "Between the signal and the kill, wall time."},
	"Job.idle":  {doc: "Stop when the machine does nothing for so long, wall time. Never unless set."},
	"Job.notify": {doc: "Webhook: URL that gets a POST with id, job, state and why when the job is over, " +
		"again until it is accepted; the id stays. $NAME of secrets is filled in, so that a token need not stand here."},
	"Job.compat":        {doc: "Set the variables of that system too.", later: "only scrimp's own variables are set"},
	"Job.team":          {doc: "Whose cost it is."},
	"Job.project":       {doc: "Whose cost it is."},
	"Job.environment":   {doc: "Whose cost it is."},
	"Job.model_version": {doc: "Whose cost it is."},
	"Job.tags":          {doc: "On every resource and posting."},

	"Data.path":   {doc: "Path or URL."},
	"Data.size":   {doc: "How much it is."},
	"Data.region": {doc: "Where it lies."},

	"Resources.cpus": {doc: "Processors: 4, 4+ or 4..16. This release takes the cheapest machine that has at " +
		"least the lower number."},
	"Resources.memory": {doc: "Memory with its unit: 8GiB, 8GiB+ or 8..64GiB. This release takes the cheapest " +
		"machine that has at least the lower size."},
	"Resources.disk": {doc: "Disk with its unit: 100GiB, 100GiB+ or 100..500GiB.",
		later: "machines are not chosen by their disk"},
	"Resources.accelerator": {doc: "Kind and count: H100, H100:8, H100:2+ or H100:1..8.",
		later: "a market that sells processors only cannot honour it"},
	"Resources.zones":    {doc: "Zones or regions it may run in. All unless set."},
	"Resources.capacity": {doc: "Kinds of capacity it may use. All unless set; any is all."},

	"Variant.name":       {doc: "Of the alternative; each has another."},
	"Variant.resources":  {doc: "Instead of the job's."},
	"Variant.env":        {doc: "Besides the job's."},
	"Variant.args":       {doc: "Added to the job's arguments."},
	"Variant.throughput": {doc: "Work per second against the job's own resources; 1.6x is read as 1.6."},

	"Rung.capacity":  {doc: "Kind of capacity."},
	"Rung.zones":     {doc: "Zones or regions."},
	"Rung.use":       {doc: "Name of an alternative of any_of; the job's own resources unless set."},
	"Rung.max_price": {doc: "Highest price of a machine's hour on this rung."},
	"Rung.for": {doc: "How long to try before the next rung, market time; and how long this one rests after " +
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

	"Work.steps":   {doc: "Optimiser steps; K, M, B and T are read as thousand to trillion."},
	"Work.epochs":  {doc: "Passes over the data.", later: "planning goes by steps and time"},
	"Work.samples": {doc: "Training samples.", later: "planning goes by steps and time"},
	"Work.tokens":  {doc: "Training tokens.", later: "planning goes by steps and time"},
	"Work.time":    {doc: "Expected time of an uninterrupted run on a machine of speed 1, market time."},

	"Metric.name":      {doc: "As the program reports it."},
	"Metric.goal":      {doc: "Which way is better."},
	"Metric.target":    {doc: "Reached is a success, and the rest of the money comes back."},
	"Metric.patience":  {doc: "Steps without improvement that end the run as a plateau."},
	"Metric.min_delta": {doc: "The least change that counts as improvement."},

	"Checkpoint.dir": {doc: "Folder the program saves to, below the work folder or absolute. The program " +
		"finds it in SCRIMP_CHECKPOINT_DIR too."},
	"Checkpoint.interval": {doc: "How often to save, wall time; auto follows what a save costs and how often " +
		"machines are interrupted."},
	"Checkpoint.keep":      {doc: "Newest versions that are kept."},
	"Checkpoint.best":      {doc: "Keep the best by the metric too."},
	"Checkpoint.every_nth": {doc: "Keep every Nth version too."},
	"Checkpoint.store":     {doc: "Where they are kept: file:///… or s3://…. The server's data folder unless set."},
	"Checkpoint.move_time": {doc: "What taking the newest one to another region adds to a restart, market time. " +
		"Zones of several regions are weighed with it."},
	"Checkpoint.move_cost": {doc: "What that costs: weighed against a cheaper region, and counted by simulate."},

	"Progress.pattern": {doc: "Regular expression (RE2) that is searched in each line of output. The groups step, " +
		"total and epoch have a meaning; any other named group is a metric."},
	"Progress.saved": {doc: "Regular expression of the line that says a save is complete; the group step is optional."},
	"Progress.file":  {doc: "File of JSON lines such as {\"step\":12,\"loss\":2.3}, below the work folder."},

	"Budget.dollars":    {doc: "In all, over every attempt."},
	"Budget.gpu_hours":  {doc: "Hours times accelerators, in all."},
	"Budget.wall_clock": {doc: "From the first machine on, market time."},

	"Retry.max": {doc: "How often at most."},
	"Retry.codes": {doc: "Exit statuses that are tried again, 1 to 255. 75 always is; 137 (killed, most often for " +
		"memory) only where it is listed."},
}
