package diagnose

import (
	"fmt"
	"math"
	"regexp"
	"strconv"

	"scrimp/internal/lib/size"
	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose/class"
)

// Limits of what keeps a machine from its work.
const (
	waitsForDisk = 0.35 // processes in I/O wait
	manyCalls    = 1500 // per second
	manyWrites   = 300
	dearestWrite = 100e-6    // largest kernel time of a small write, in seconds
	smallWrite   = 4 << 10   // bytes
	syncedWrites = 5         // per second; each waits for a disk
	leastSynced  = 1 << 10   // bytes on the disk per write, because a disk writes blocks of 4 KiB
	usualSystem  = 0.02      // the kernel's share of the processor time of a program that computes
	dearestCall  = 50e-6     // largest kernel time of a small read, in seconds
	tiny         = 16 << 10  // bytes per call
	fast         = 256 << 10 // bytes per second from the network
	oneCore      = 0.8
	isBlocked    = 0.3
	tinyMessage  = 256 // bytes of a message between processes
)

// waitShare returns the share of the main thread's own time in which it is blocked. Time in which it could run while
// other programs had the processors does not count.
func (f *features) waitShare() float64 {
	blocked, main := f.get(telemetry.TaskMainBlocked), f.get(telemetry.TaskMain)
	if math.IsNaN(blocked) || math.IsNaN(main) || blocked == 0 {
		return blocked
	}
	return blocked / (blocked + min(1-blocked, main))
}

// share returns the part of a processor that a thread gets if it wants one all the time.
func (f *features) share() float64 {
	if queue := f.get(telemetry.RunQueue); queue > f.cores {
		return f.cores / queue
	}
	return 1
}

// crowded reports whether other programs have the processors most of the time. A program that gets most of them has
// most of the queue, too.
func (f *features) crowded() bool {
	return f.get(telemetry.RunQueue) > 2*f.cores+f.get(telemetry.TaskThreads)/2 && f.get(telemetry.TaskCPU) < 0.6*f.cores
}

func slowDisk(f *features) (finding, bool) {
	wait, blocked := f.get(telemetry.IOWait), f.waitShare()
	// Processors count as waiting only while nothing else can run on them. On a busy machine the program itself shows
	// the wait: it reads from the disk and is blocked.
	itself := blocked >= 0.4 && f.get(telemetry.TaskRead) >= 4<<20
	// On a machine with many cores the wait of one process is a small part, like that of other programs.
	certain := wait >= 0.02 || blocked >= 0.4 && f.get(telemetry.TaskRead) >= 1<<20
	if !f.starved() || f.syncs() || !(wait*f.cores >= waitsForDisk && certain) && !itself {
		return finding{}, false
	}
	if itself && wait*f.cores < waitsForDisk {
		return finding{class.SlowDisk,
			fmt.Sprintf("%s; its main thread waits %s of the time while the disk gives it %s a second",
				f.used(), percent(blocked), size.About(f.get(telemetry.TaskRead))), f.gain(), false}, true
	}
	text := fmt.Sprintf("%s; %.1f processes wait for a disk all the time (I/O wait %s of %.0f cores)", f.used(),
		wait*f.cores, percent(wait), f.cores)
	if read := f.get(telemetry.TaskRead); read >= 1<<16 {
		text += fmt.Sprintf(", which gives %s a second", size.About(read))
	}
	return finding{class.SlowDisk, text, f.gain(), false}, true
}

// passes reports whether the small reads and writes are messages that the program's processes pass each other, as
// workers that load single samples do: both are many, of similar number, and of a few bytes.
func (f *features) passes() bool {
	reads, writes := f.get(telemetry.TaskReadCalls), f.get(telemetry.TaskWriteCalls)
	workers := f.get(telemetry.TaskCPU) - f.get(telemetry.TaskMain)
	return min(reads, writes) >= manyWrites && max(reads, writes) <= 3*min(reads, writes) && f.writeSize < tinyMessage &&
		f.get(telemetry.TaskReadCallBytes)/reads < tinyMessage && workers >= leastShare*f.get(telemetry.TaskCPU)
}

// readsSmall reports whether the program makes many small reads that keep the kernel busy.
func (f *features) readsSmall() bool {
	calls, bytes := f.get(telemetry.TaskReadCalls), f.get(telemetry.TaskReadCallBytes)
	return calls >= manyCalls && bytes/calls < tiny && f.inCalls(calls) >= 0.15 && !f.passes()
}

// inCalls returns the kernel's share of the processor time of a program, or of one of its threads if it computes on
// many cores, for calls a second.
func (f *features) inCalls(calls float64) float64 {
	own := f.get(telemetry.TaskCPU)
	if own <= 1 {
		return f.get(telemetry.TaskSystem) / max(own, 0.1)
	}
	system := f.get(telemetry.TaskSystem)
	return max(system/own, min(1, system-usualSystem*own, calls*dearestCall))
}

// syncs reports whether the program waits for a disk that writes its lines, one by one.
func (f *features) syncs() bool {
	waits := f.get(telemetry.IOWait)*f.cores >= waitsForDisk || f.waitShare() >= isBlocked
	return waits && f.get(telemetry.TaskWriteCalls) >= syncedWrites && f.writeSize < smallWrite &&
		!(f.get(telemetry.TaskRead) >= 1<<20) &&
		f.get(telemetry.TaskWrite) >= max(1<<10, leastSynced*f.get(telemetry.TaskWriteCalls))
}

func smallReads(f *features) (finding, bool) {
	if !f.readsSmall() || f.gpu && !f.starved() {
		return finding{}, false
	}
	calls, bytes := f.get(telemetry.TaskReadCalls), f.get(telemetry.TaskReadCallBytes)
	system, own := f.get(telemetry.TaskSystem), f.get(telemetry.TaskCPU)
	// Larger files save the kernel's part of loading. Decoding remains, so a GPU does not get all the work it could
	// take.
	kernel := max(f.inCalls(calls), 0.2)
	waste := f.whole(around(kernel, 0.5, 1.8))
	if f.gpu {
		all := f.gain()
		value := min(all.Value, waste.Value)
		waste = Range{min(value, 0.5*waste.Value), value, all.High}
	}
	return finding{class.SmallReads,
		fmt.Sprintf("%s; %.0f reads a second of %s each, and %s of its processor time is the "+
			"kernel's", f.used(), calls, size.About(bytes/calls), percent(system/max(own, 0.01))), waste, false}, true
}

func remoteRead(f *features) (finding, bool) {
	in, out := f.get(telemetry.NetReceive), f.get(telemetry.NetTransmit)
	waits := f.waitShare()
	if !f.starved() || !(in >= fast) || in < 4*out || f.get(telemetry.CPU) >= fed || waits < isBlocked {
		return finding{}, false
	}
	return finding{class.RemoteRead, fmt.Sprintf("%s while it receives %s a second, and processors and disks wait",
		f.used(),
		size.About(in)), f.gain(), false}, true
}

func logging(f *features) (finding, bool) {
	calls, syncs := f.get(telemetry.TaskWriteCalls), f.syncs()
	if !syncs && !(calls >= manyWrites) || f.writeSize >= smallWrite || syncs && !f.starved() || f.passes() {
		return finding{}, false
	}
	system, own, waits := f.get(telemetry.TaskSystem), f.get(telemetry.TaskCPU), f.waitShare()
	if math.IsNaN(waits) || f.gpu {
		waits = 0
	}
	// One thread writes while a program that computes on many cores waits for it.
	share := min(0.9, max(min(system/min(1, max(own, 0.1)), calls*dearestWrite), waits))
	if f.gpu { // it computes meanwhile
		gain := max(0, 1-f.get(telemetry.GPU)/fed)
		if share = min(share, gain); syncs {
			share = gain
		}
	}
	if share < small {
		return finding{}, false
	}
	text := fmt.Sprintf("%.0f writes a second of %s each", calls, size.About(f.writeSize))
	if steps := f.get(telemetry.TaskSteps); steps > 0 {
		text += fmt.Sprintf(", %.0f a step", calls/steps)
	}
	if syncs {
		text += ", while the program waits for its disk"
	}
	return finding{class.Logging, text + ": " + f.used(), f.whole(around(share, 0.5, 1.5)), false}, true
}

func oversubscription(f *features) (finding, bool) {
	threads, queue := f.get(telemetry.TaskThreads), f.get(telemetry.RunQueue)
	own := f.get(telemetry.TaskCPU)
	// Sleeping threads do no harm, even if others fill the queue: competing threads use the kernel a lot.
	fight := own >= 0.4*f.cores && !f.crowded() || f.get(telemetry.TaskSystem) >= 0.25*own && own >= 0.2
	if !(threads >= 4*f.cores) || !(queue >= 3*f.cores) || !fight || f.cores == 0 {
		return finding{}, false
	}
	return finding{class.Oversubscription, fmt.Sprintf("%.0f threads on %.0f cores, %.0f of them want to run at a time",
		threads,
		f.cores, queue), f.whole(around(0.3, 0.3, 2)), false}, true
}

// Numbers that programs print or report: the time of a batch, and the part for data.
var (
	dataTime  = regexp.MustCompile(`(?i)\bdata(?:[ _](?:time|s|load\w*))?\s*[:=]?\s*([0-9]+\.[0-9]+)`)
	batchTime = regexp.MustCompile(`(?i)\b(?:batch|step|iter)?[ _]?time\s*[:=]?\s*([0-9]+\.[0-9]+)`)
)

// said returns the share of a batch's time for data, as reported by the program.
func (f *features) said() (float64, bool) {
	data, all := 0.0, 0.0
	for _, name := range []string{"data_time", "data_s", "data_time_s", "data_loading_s"} {
		data = max(data, f.in.Metrics[name])
	}
	for _, name := range []string{"batch_time", "step_time", "step_s", "iter_time", "time_s"} {
		all = max(all, f.in.Metrics[name])
	}
	if data == 0 { // a single line may be an outlier
		all = 0
		for _, l := range f.in.Lines[max(0, len(f.in.Lines)-200):] {
			d, b := dataTime.FindStringSubmatch(l.Text), batchTime.FindStringSubmatch(l.Text)
			if d != nil && b != nil {
				data, all = data+number(d[1]), all+number(b[1])
			}
		}
	}
	return data / all, all > 0 && data > 0 && data <= all
}

// number parses the digits that a pattern has found.
func number(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return v
}

// Limits of workers that load data: leastWorkers is the smallest number of cores that they use.
const (
	leastWorkers = 0.1
	leastShare   = 0.1  // of the program's processors
	ranNothing   = 0.01 // use of a GPU that waits for no data
)

// mainFills reports whether the main process, on one core, is busy while the GPU is not: it loads data, or starts
// kernels more slowly than the GPU computes them. It may wait for the GPU the rest of the time.
func (f *features) mainFills() bool {
	main, idle := f.get(telemetry.TaskMain), 1-f.get(telemetry.GPU)
	return main <= 1.3 && main >= min(oneCore, 0.9*idle) && f.waitShare() <= 1-0.8*idle
}

func dataLoading(f *features) (finding, bool) {
	if share, ok := f.said(); ok && share >= 0.2 {
		return finding{class.DataLoading, fmt.Sprintf("the program reports that data takes %s of a step; %s", percent(share),
			f.used()), f.whole(around(share, 0.5, 1)), false}, true
	}
	task, main, waits := f.get(telemetry.TaskCPU), f.get(telemetry.TaskMain), f.waitShare()
	workers := task - main
	_, logs := logging(f)
	if kernel := f.get(telemetry.TaskSystem) / task; f.passes() && !f.gpu && kernel >= 0.15 {
		return finding{class.DataLoading,
			fmt.Sprintf("%s; its processes pass each other %.0f small messages a second, and %s of its processor time is "+
				"the kernel's: let a worker make whole batches", f.used(), f.get(telemetry.TaskWriteCalls), percent(kernel)),
			f.whole(around(kernel, 0.5, 1.8)), false}, true
	}
	switch {
	case !f.starved() && f.gpu, math.IsNaN(task), f.gpu && f.get(telemetry.GPU) < ranNothing, logs:
	case f.gpu && (task >= fed*f.cores || f.get(telemetry.CPU) >= fed && task >= 0.5*f.cores): // not full of others' work
		return finding{class.DataLoading, fmt.Sprintf("%s, and the processors are full: the program uses %.1f of %.0f cores",
			f.used(), task, f.cores), f.gain(), false}, true
	case workers >= max(leastWorkers, 0.7*f.share()) && workers >= leastShare*task && waits >= isBlocked &&
		(main < 0.6 || !f.gpu):
		return finding{class.DataLoading,
			fmt.Sprintf("%s; the main process waits %s of the time, and its workers use %.1f cores",
				f.used(), percent(waits), workers), f.gain(), false}, true
	case f.gpu && f.mainFills() && f.loadsItself() && !f.readsSmall():
		return finding{class.DataLoading,
			fmt.Sprintf("%s; the main process uses %.1f of %.0f cores, and reads %s a second itself",
				f.used(), main, f.cores, size.About(f.get(telemetry.TaskReadCallBytes))), f.gain(), false}, true
	}
	return finding{}, false
}

// Limits of a main process that loads data, as opposed to one that starts small kernels.
const (
	loadsMuch  = 1 << 20 // bytes per second
	idlePower  = 0.13    // of a GPU's limit, without kernels
	largePower = 0.35    // of a GPU's limit, which kernels that fill the GPU draw more than idlePower
	shortSteps = 4       // per second: longer ones have more kernels than a model has
)

// loadsItself reports whether a busy main process loads data, and does not only start small kernels. Small kernels
// leave most of a GPU without work, so that it draws little power while it counts as used.
func (f *features) loadsItself() bool {
	use := f.get(telemetry.GPU)
	switch {
	case f.get(telemetry.TaskReadCallBytes) >= loadsMuch:
		return true
	case use >= atWork && !math.IsNaN(f.gpuPower):
		return f.gpuPower-idlePower >= largePower*use
	}
	return use < 0.3 && !(f.get(telemetry.TaskSteps) >= shortSteps)
}

func blocked(f *features) (finding, bool) {
	waits, task := f.waitShare(), f.get(telemetry.TaskCPU)
	least := isBlocked
	if f.gpu { // a part is the wait for the GPU itself
		least = 0.75
	}
	// If other threads compute while the main one waits, the two exceed the time.
	if !f.starved() || !(waits >= least) || !(task/max(1, f.cores) <= 1.1-waits) {
		return finding{}, false
	}
	return finding{class.Blocked,
		fmt.Sprintf("%s; its main thread waits %s of the time, for neither processors, disks nor the "+
			"network", f.used(), percent(waits)), f.gain(), false}, true
}

func smallBatch(f *features) (finding, bool) {
	main := f.get(telemetry.TaskMain)
	if math.IsNaN(main) {
		main = f.get(telemetry.TaskCPU)
	}
	if !f.gpu || !f.starved() || f.work == 0 || !(main >= oneCore) || f.gpuMemory > 0.6 {
		return finding{}, false
	}
	text := fmt.Sprintf("%s; one core begins its kernels and is full", f.used())
	if !math.IsNaN(f.gpuMemory) {
		text += ", and " + percent(f.gpuMemory) + " of its memory is used"
	}
	return finding{class.SmallBatch, text, f.gain(), false}, true
}

func oversizedGPU(f *features) (finding, bool) {
	u := f.get(telemetry.GPU)
	if !f.gpu || f.work == 0 || !(u < hungry) || u < atWork {
		return finding{}, false
	}
	main := f.get(telemetry.TaskMain)
	if main >= oneCore && f.work < forLong { // larger batches may fill it
		return finding{}, false
	}
	waste := f.gain()
	if main >= oneCore {
		waste = Range{waste.Low / 2, waste.Value * 0.9, waste.High}
	}
	text := fmt.Sprintf("GPU %s used for %s, below 50 %%", percent(u), span(f.work))
	if !math.IsNaN(f.gpuMemory) {
		text += ", " + percent(f.gpuMemory) + " of its memory"
	}
	return finding{class.OversizedGPU, text, waste, false}, true
}

func oversizedCPU(f *features) (finding, bool) {
	task := f.get(telemetry.TaskCPU)
	if _, ok := blocked(f); ok { // it needs more while it does not wait
		task /= 1 - f.waitShare()
	}
	needs := max(1, math.Ceil(task-0.1))
	// On a machine filled by others it is unknown how many processors the program would use.
	idle := f.get(telemetry.Idle)*f.cores >= 0.5*(f.cores-needs)
	if f.gpu || f.work < 60 || !idle || !(needs <= 0.5*f.cores) {
		return finding{}, false
	}
	return finding{class.OversizedCPU, fmt.Sprintf("the program uses %.1f of %.0f cores", task, f.cores),
		f.whole(around(1-needs/f.cores, 0.3, 1)), false}, true
}

func oversizedMemory(f *features) (finding, bool) {
	asked := float64(f.in.Account.Requested)
	if asked < 8<<30 || f.memoryPeak <= 0 || f.memoryPeak > asked/4 || f.seconds < 120 {
		return finding{}, false
	}
	return finding{class: class.OversizedMemory,
		evidence: fmt.Sprintf("the job file asks for %s, and the program used %s at "+
			"most", size.About(asked), size.About(f.memoryPeak)), unpriced: true}, true
}
