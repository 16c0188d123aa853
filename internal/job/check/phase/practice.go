package phase

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/job/check/fact"
	"scrimp/internal/lib/size"
)

// Names that training programs and their flags use.
var (
	prefetchForm = regexp.MustCompile(`(?i)(pin_memory|prefetch_factor|non_blocking|\.prefetch\(|prefetch_to_device)`)
	halfForm     = regexp.MustCompile(`(?i)(\bfloat16\b|\bfp16\b|\.half\(\)|--half\b|\b16-mixed\b)`)
	scalerForm   = regexp.MustCompile(`(?i)(GradScaler|loss[_-]?scal|--fp16\b|\bfp16=True|\b16-mixed\b|mixed_float16|` +
		`mixed_precision=["']?fp16|["']fp16["']\s*:|amp\.initialize)`)
	wideForm  = regexp.MustCompile(`(?i)(\bbf16\b|bfloat16|\bfp32\b|\btf32\b|float32)`)
	saveForm  = regexp.MustCompile(`\b(torch\.save|save_weights|save_model|safetensors\S*\.save_file)\(`)
	wholeForm = regexp.MustCompile(`(?i)(optim\w*\.state_dict\(|["']optim\w*["']|accelerator\.save_state|` +
		`save_checkpoint\(|\bdcp\.save|CheckpointManager|ModelCheckpoint|Trainer\(|train\.Checkpoint\(|set_checkpoint)`)
	stopForm = regexp.MustCompile(`(SIGTERM|SIGUSR1|^trap |\btrap ['"]|ScrimpCallback|should_checkpoint|should_stop|` +
		`catch_sigterm)`)
	oneProcessForm = regexp.MustCompile(`\bDataParallel\(`)
	processesForm  = regexp.MustCompile(`(?i)(DistributedDataParallel|FullyShardedDataParallel|\bfsdp\b|fully_shard|` +
		`deepspeed|accelerate launch|\btorchrun\b|torch\.distributed|lightning|Trainer\(|MirroredStrategy|horovod|` +
		`jax\.(pmap|sharding))`)
	regionForm = regexp.MustCompile(`[?&]region=([^&#]+)`)
	probeForm  = regexp.MustCompile(`(?i)(livenessProbe|readinessProbe|health[_-]?check|/healthz|/v2/health)`)
)

func prefetch(c *Subject) (Verdict, string, string) {
	m, ok := c.Find(prefetchForm)
	loader, loads := c.Find(loaderForm)
	switch {
	case ok && !m.Off && !m.Only:
		return Pass, m.Where, ""
	case c.Job.Resources.Accelerator == "" && loads:
		return Pass, "it asks for no accelerator to copy batches to", ""
	case ok && m.Off:
		return Warn, "switched off: " + m.Where, "pin_memory=True, non_blocking=True"
	case loads:
		return Warn, loader.Where + " copies each batch while the accelerator waits",
			"pin_memory=True and prefetch_factor in the loader, non_blocking=True where the batch is copied"
	}
	return Unknown, "no loader was found in the programs", "see what copies cost with scrimp diagnose"
}

// disk compares the inputs that machines keep with the disk that the job asks for.
func disk(c *Subject) (Verdict, string, string) {
	var sum size.Bytes
	for _, d := range c.Job.Data {
		if d.Name != "" && !d.Stream && strings.Contains(d.Path, "://") {
			sum += d.Size
		}
	}
	asks := c.Job.Resources.Disk
	switch {
	case sum == 0:
		return Unknown, "no input with a name and a size is kept on the machine", "name inputs under data with their size"
	case asks.Max > 0 && asks.Max < sum:
		return Fail, "inputs of " + size.About(float64(sum)) + ", and a disk of at most " + size.About(float64(asks.Max)),
			"raise resources.disk, or stream the input: data.stream"
	case asks.Min < sum:
		return Warn, "inputs of " + size.About(float64(sum)) + ", and resources.disk accepts less",
			"resources.disk: " + (sum + sum/4).Exact() + "+, or data.stream"
	}
	return Pass, fmt.Sprintf("inputs of %s, and a disk of %s or more", size.About(float64(sum)),
		size.About(float64(asks.Min))), ""
}

func lossScaling(c *Subject) (Verdict, string, string) {
	format := strings.ToLower(c.Facts["precision"])
	if format == "" {
		format = c.Job.Model.Precision
	}
	half, found := c.Find(halfForm)
	found = found && !half.Only && !half.Off
	if format != "" {
		found = slices.Contains([]string{"16", "fp16", "float16", "half", "16-mixed", "amp", "mixed"}, format)
		half.Where = "the precision is " + format
	}
	scaler, scales := c.Find(scalerForm)
	switch {
	case found && scales && !scaler.Only && !scaler.Off:
		return Pass, scaler.Where, ""
	case found && !c.HasPrograms:
		return Unknown, half.Where + ", and no program shows whether it scales the loss", "name the program in command"
	case found:
		return Warn, half.Where + ", and no program scales the loss: small gradients become zero",
			"torch.amp.GradScaler, or bf16"
	case format != "":
		return Pass, half.Where + ", which needs none", ""
	}
	if m, ok := c.Find(wideForm); ok {
		return Pass, m.Where + " needs none", ""
	}
	return Unknown, "neither the command nor the programs name a precision", fact.Supply("precision")
}

func optimizerSaved(c *Subject) (Verdict, string, string) {
	if m, ok := c.Find(wholeForm); ok {
		return Pass, m.Where, ""
	}
	if m, ok := c.Find(saveForm); ok && c.Trains {
		return Warn, m.Where + " saves no optimizer: a resumed run repeats its warm-up",
			"save optimizer.state_dict(), the scheduler and the step beside the model"
	}
	return Unknown, "no save was found in the programs", "save model, optimizer, scheduler and step"
}

func savesOnStop(c *Subject) (Verdict, string, string) {
	m, ok := c.Find(stopForm)
	switch {
	case !c.OnSpot:
		return Pass, "it never runs on spot", ""
	case ok:
		return Pass, m.Where, ""
	case c.HasPrograms:
		return Warn, "no program reacts to a notice: work since the newest checkpoint is repeated",
			"save on SIGTERM, or ask scrimp.should_checkpoint() each step (docs/programs.md)"
	}
	return Unknown, "no program was found in the work folder", "save on SIGTERM (docs/programs.md)"
}

// several reports whether the job asks for more than one accelerator.
func (c *Subject) several() bool {
	_, count, _ := strings.Cut(c.Job.Resources.Accelerator, ":")
	if _, most, ok := strings.Cut(count, ".."); ok {
		count = most
	}
	n, err := strconv.Atoi(strings.TrimSuffix(count, "+"))
	return err == nil && n > 1 || strings.HasSuffix(count, "+") ||
		c.Job.Resources.Accelerator != "" && c.Job.MostNodes() > 1
}

func processes(c *Subject) (Verdict, string, string) {
	if !c.several() {
		return Pass, "it asks for one accelerator at most", ""
	}
	if m, ok := c.Find(oneProcessForm); ok {
		if all, also := c.Find(processesForm); !also || all.Only {
			return Warn, m.Where + " drives all accelerators from one process", "DistributedDataParallel under torchrun"
		}
	}
	if m, ok := c.Find(processesForm); ok && !m.Only {
		return Pass, m.Where, ""
	}
	if c.HasPrograms {
		return Warn, "no program uses more than one accelerator: the others would idle",
			"DistributedDataParallel under torchrun"
	}
	return Unknown, "no program was found in the work folder", "name the program in command"
}

// storeRegion compares the region of the checkpoints' store with where the job may run.
func storeRegion(c *Subject) (Verdict, string, string) {
	in := regionForm.FindStringSubmatch(c.Job.Checkpoint.Store)
	if in == nil {
		return Unknown, "checkpoint.store names no region", "checkpoint.store: s3://bucket?region=us-east-1"
	}
	region, zones := in[1], c.Job.Resources.Zones
	near := func(z string) bool { return strings.HasPrefix(z, region) }
	switch fix := "resources.zones: [" + region + "], or a bucket where it runs"; {
	case len(zones) == 0:
		return Warn, "they lie in " + region + ", and the job may run anywhere: each save may pay for a transfer", fix
	case !slices.ContainsFunc(zones, near):
		return Fail, "they lie in " + region + ", and the job runs in " + strings.Join(zones, ", ") + " only", fix
	case slices.ContainsFunc(zones, func(z string) bool { return !near(z) }):
		return Warn, "they lie in " + region + ", and the job may run in " + strings.Join(zones, ", "), fix
	}
	return Pass, "both are in " + region, ""
}

func bestKept(c *Subject) (Verdict, string, string) {
	switch j := c.Job; {
	case j.Checkpoint.Dir == "":
		return Unknown, "it keeps no checkpoints", "name checkpoint.dir"
	case j.Metric.Name == "":
		return Unknown, "no metric says which checkpoint is the best", "name metric.name, and set checkpoint.best"
	case j.Checkpoint.Best:
		return Pass, "checkpoint.best keeps the one with the best " + j.Metric.Name, ""
	}
	return Warn, "the newest checkpoints are kept, and the best by " + c.Job.Metric.Name + " may be older",
		"set checkpoint.best: true"
}

func probed(c *Subject) (Verdict, string, string) {
	if m, ok := c.Find(probeForm); ok && c.Serves {
		return Pass, m.Where, ""
	}
	return answered("health", c.live("unknown whether anything restarts a replica that hangs"),
		"add a liveness and a readiness probe")(c)
}

func committed(c *Subject) (Verdict, string, string) {
	if slices.Contains(c.Job.Resources.Capacity, "reserved") {
		return Pass, "resources.capacity accepts reserved machines", ""
	}
	return answered("commitment", c.live("unknown whether the steady part of its use is committed"),
		"scrimp commit compares reserved prices and savings plans with on-demand")(c)
}
