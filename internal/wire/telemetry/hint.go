package telemetry

import "fmt"

// Thresholds of hints, as shares. A GPU above fed has enough to do; one below hungry for long is larger than its
// work needs.
const (
	fed      = 0.70
	hungry   = 0.50
	waits    = 0.10 // of processor time in I/O wait: one waiting process is 1 / cores
	busy     = 0.85
	fullCore = 0.90
	spare    = 0.25
	atWork   = 0.05 // of a GPU: less is the driver, or a program that has not started its work
	waited   = 0.25 // of the GPUs' time, until the program first used one
)

// Enough is the telemetry needed for a hint, in seconds per machine.
const Enough = 60

// Hint returns a sentence about what the figures of a run mean for the next one; "": nothing stands out. cores is
// the number per machine; 0: unknown.
func (s *Summary) Hint(cores int) string {
	if s.Seconds < Enough {
		return ""
	}
	gpu := s.Of[GPU]
	switch {
	case gpu.Known() && gpu.Average >= fed:
		return ""
	case s.Begun.Known() && s.Begun.Average >= fed:
		if late := 1 - s.Begun.Seconds/gpu.Seconds; late >= waited {
			return fmt.Sprintf("GPU %s used from its first use on, after %s of the time: "+
				"shorten the loading, preparation and compilation before that", Percent(s.Begun.Average), Percent(late))
		}
		return ""
	case s.Begun.Known():
		return fmt.Sprintf("GPU %s used: %s", Percent(s.Begun.Average), s.explainIdle(cores))
	case gpu.Known():
		return fmt.Sprintf("GPU %s used: %s", Percent(gpu.Average), s.explainIdle(cores))
	}
	return s.hintOfCPU(cores)
}

// hintOfCPU is the hint of a run that uses no GPU.
func (s *Summary) hintOfCPU(cores int) string {
	used := s.used(cores)
	switch {
	case cores <= 1 || !used.Known() || used.Average >= spare:
		return ""
	case s.Of[IOWait].Average >= waits:
		return fmt.Sprintf("CPU %s used: reading data waits for the disk (I/O wait %s)", Percent(used.Average),
			Percent(s.Of[IOWait].Average))
	case cores > 0 && s.Of[RunQueue].Average > 2*float64(cores): // other programs have the processors that it wants
		return ""
	}
	return fmt.Sprintf("CPU %s of %d cores used: a smaller machine would do", Percent(used.Average), cores)
}

// used returns the share of the processors that the program itself used, since other programs may run on the
// machine. Without telemetry of the program, it is that of the whole machine.
func (s *Summary) used(cores int) Stat {
	own := s.Of[TaskCPU]
	if cores <= 0 || !own.Known() {
		return s.Of[CPU]
	}
	own.Average, own.Peak = own.Average/float64(cores), own.Peak/float64(cores)
	return own
}

// explainIdle returns what an underused GPU waits for.
func (s *Summary) explainIdle(cores int) string {
	wait, cpu, task := s.Of[IOWait], s.Of[CPU], s.Of[TaskCPU]
	switch {
	case wait.Known() && wait.Average >= waits:
		return fmt.Sprintf("data loading waits (I/O wait %s)", Percent(wait.Average))
	case cpu.Known() && cpu.Average >= busy:
		return fmt.Sprintf("the processors are busy (CPU %s): load or prepare data with more cores, or less per sample",
			Percent(cpu.Average))
	case cores > 1 && task.Known() && task.Average >= fullCore && task.Average <= 1.3:
		// Python that starts many small kernels looks the same as Python that makes each sample.
		return fmt.Sprintf("the program uses one core of %d: use larger batches if they are small, or load data in several "+
			"processes", cores)
	case s.Begun.Average < hungry:
		return "neither processors nor disks are busy: larger batches, or a smaller GPU"
	}
	return "above 70 % is the target: larger batches, or data loading that runs ahead"
}

// Percent formats a share.
func Percent(share float64) string { return fmt.Sprintf("%.0f %%", share*100) }
