// Package class lists the classes of causes that diagnose names: the group of each, and for each framework the words
// of the change that helps.
package class

// Class is a kind of cause.
type Class string

// The classes.
const (
	DataLoading      Class = "data_loading"
	SlowDisk         Class = "slow_disk"
	RemoteRead       Class = "remote_read"
	SmallReads       Class = "small_reads"
	SmallBatch       Class = "small_batch"
	Checkpointing    Class = "checkpointing"
	Evaluation       Class = "evaluation"
	Logging          Class = "logging"
	HostCopies       Class = "host_device_copies"
	Synchronisation  Class = "synchronisation"
	Precision        Class = "precision"
	Recompute        Class = "recompute"
	Oversubscription Class = "thread_oversubscription"
	Leak             Class = "memory_leak"
	MemoryPressure   Class = "memory_pressure"
	SetUp            Class = "set_up"
	IdleAfter        Class = "idle_after_end"
	Blocked          Class = "blocked"
	Straggler        Class = "straggler"
	UnusedGPU        Class = "unused_gpu"
	Communication    Class = "communication"
	OversizedGPU     Class = "oversized_gpu"
	OversizedCPU     Class = "oversized_cpu"
	OversizedMemory  Class = "oversized_memory"
)

// All returns all classes in table order.
func All() []Class {
	return []Class{DataLoading, SlowDisk, RemoteRead, SmallReads, SmallBatch, Checkpointing, Evaluation, Logging,
		HostCopies, Synchronisation, Precision, Recompute, Oversubscription, Leak, MemoryPressure, SetUp, IdleAfter, Blocked,
		Straggler, UnusedGPU, Communication, OversizedGPU, OversizedCPU, OversizedMemory}
}

// Framework is what a program trains with; empty if unknown.
type Framework string

// Frameworks with their own wording of a change.
const (
	PyTorch     Framework = "pytorch"
	Lightning   Framework = "lightning"
	HuggingFace Framework = "huggingface"
	TensorFlow  Framework = "tensorflow"
)

// kind holds the texts of a class.
type kind struct {
	group, effort, risk string
	changes             map[Framework]string // "" is for all other frameworks
}

func (k kind) change(f Framework) string {
	if s := k.changes[f]; s != "" {
		return s
	}
	if s := k.changes[PyTorch]; s != "" && (f == Lightning || f == HuggingFace || f == "") {
		return s
	}
	return k.changes[""]
}

// Groups of causes.
const (
	ofData      = "data"
	ofModel     = "model"
	ofCode      = "code"
	ofResources = "resources"
)

var classes = map[Class]kind{
	DataLoading: {ofData, "low", "none", map[Framework]string{
		PyTorch: "DataLoader(..., num_workers=<cores - 1>, prefetch_factor=4, persistent_workers=True, pin_memory=True); " +
			"convert the data once to what the model takes (arrays, Parquet, WebDataset)",
		Lightning: "in train_dataloader: DataLoader(..., num_workers=<cores - 1>, prefetch_factor=4, " +
			"persistent_workers=True, pin_memory=True)",
		HuggingFace: "TrainingArguments(dataloader_num_workers=<cores - 1>, dataloader_prefetch_factor=4, " +
			"dataloader_persistent_workers=True, dataloader_pin_memory=True); dataset.map(..., num_proc=<cores>) once before",
		TensorFlow: "dataset.map(f, num_parallel_calls=tf.data.AUTOTUNE).cache().prefetch(tf.data.AUTOTUNE)",
		"":         "load the next batch in other processes while the model computes, and prepare the data once before",
	}},
	SlowDisk: {ofData, "medium", "none", map[Framework]string{
		PyTorch: "copy the data to local SSD or memory before the first epoch, and read it in large pieces " +
			"(WebDataset, Parquet); DataLoader(num_workers=..., prefetch_factor=4) hides some of the wait",
		TensorFlow: "write TFRecord files of 100 MB or more, and read them with interleave(num_parallel_calls=AUTOTUNE)" +
			".cache().prefetch(AUTOTUNE)",
		"": "copy the data to local SSD or memory before the first epoch, and read it in large pieces",
	}},
	RemoteRead: {ofData, "medium", "none", map[Framework]string{
		PyTorch: "copy the data to the machine in setup:, or cache it there in the first epoch; " +
			"DataLoader(num_workers=<2 x cores>, prefetch_factor=8) reads several at once",
		TensorFlow: "dataset.cache(\"/local/path\"), interleave(cycle_length=16, num_parallel_calls=AUTOTUNE)",
		"":         "copy the data to the machine in setup:, or cache it there in the first epoch",
	}},
	SmallReads: {ofData, "medium", "none", map[Framework]string{
		PyTorch:    "put samples together in shards (WebDataset, Parquet, HDF5 chunks) and read whole shards",
		TensorFlow: "put samples together in TFRecord files of 100 MB or more",
		"":         "put samples together in files of 100 MB or more, and read in blocks of 1 MB",
	}},
	SmallBatch: {ofModel, "low", "medium", map[Framework]string{
		PyTorch: "batch_size x2 until memory is 80 % used, learning rate with it; torch.compile(model, " +
			"mode=\"reduce-overhead\") or CUDA graphs where the batch cannot grow",
		Lightning:   "Tuner(trainer).scale_batch_size(model); Trainer(precision=\"bf16-mixed\"); torch.compile(model)",
		HuggingFace: "TrainingArguments(auto_find_batch_size=True, bf16=True, torch_compile=True)",
		TensorFlow: "larger batch(), model.compile(jit_compile=True, steps_per_execution=32), " +
			"tf.keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")",
		"": "larger batches, and fewer, larger kernels",
	}},
	Checkpointing: {ofCode, "low", "none", map[Framework]string{
		PyTorch: "save less often (checkpoint.interval: auto in the job file says how often pays), and in a thread of its " +
			"own: torch.distributed.checkpoint.async_save",
		Lightning:   "ModelCheckpoint(every_n_train_steps=<10x>, save_weights_only=False), AsyncCheckpointIO()",
		HuggingFace: "TrainingArguments(save_strategy=\"steps\", save_steps=<10x>, save_total_limit=2)",
		TensorFlow: "tf.keras.callbacks.ModelCheckpoint(save_freq=<10x>), or CheckpointOptions(" +
			"experimental_enable_async_checkpoint=True)",
		"": "save less often: checkpoint.interval: auto in the job file says how often pays",
	}},
	Evaluation: {ofCode, "low", "low", map[Framework]string{
		PyTorch: "evaluate less often and on a part, under torch.inference_mode(), with larger batches and workers of " +
			"its own",
		Lightning:   "Trainer(check_val_every_n_epoch=<n>, limit_val_batches=0.25)",
		HuggingFace: "TrainingArguments(eval_strategy=\"steps\", eval_steps=<10x>, per_device_eval_batch_size=<2x>)",
		TensorFlow:  "model.fit(validation_freq=<n>, validation_steps=<part>)",
		"":          "evaluate less often, or on a part of the data",
	}},
	Logging: {ofCode, "low", "none", map[Framework]string{
		PyTorch: "log every 50 steps, without flush and fsync; keep losses on the device and call .item() only then; " +
			"SummaryWriter(max_queue=1000, flush_secs=60)",
		Lightning:   "Trainer(log_every_n_steps=50, enable_progress_bar=False)",
		HuggingFace: "TrainingArguments(logging_steps=50, disable_tqdm=True)",
		TensorFlow:  "model.fit(verbose=2), TensorBoard(update_freq=100)",
		"":          "log every 50 steps, without flush and fsync",
	}},
	HostCopies: {ofCode, "low", "none", map[Framework]string{
		PyTorch: "DataLoader(pin_memory=True), x.to(device, non_blocking=True); make tensors on the device " +
			"(device=...), and no .cpu() or .numpy() within a step",
		TensorFlow: "dataset.apply(tf.data.experimental.prefetch_to_device(\"/gpu:0\")); no .numpy() within a step",
		"":         "copy to the device ahead of time from pinned memory, and nothing back within a step",
	}},
	Synchronisation: {ofCode, "low", "none", map[Framework]string{
		PyTorch: "no .item(), .cpu(), print(tensor) or torch.cuda.synchronize() within a step: add losses up on the " +
			"device; zero_grad(set_to_none=True)",
		TensorFlow: "no .numpy() within a step; steps_per_execution=32",
		"":         "do not wait for the device within a step",
	}},
	Precision: {ofModel, "low", "low", map[Framework]string{
		PyTorch: "with torch.autocast(\"cuda\", dtype=torch.bfloat16): forward pass and loss (float16 and GradScaler on " +
			"V100 and T4); torch.set_float32_matmul_precision(\"high\") for what stays in 32 bits; float32 instead of " +
			"float64 (NumPy's default) for data and model",
		Lightning:   "Trainer(precision=\"bf16-mixed\"); torch.set_float32_matmul_precision(\"high\")",
		HuggingFace: "TrainingArguments(bf16=True, tf32=True); fp16=True on V100 and T4",
		TensorFlow:  "tf.keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")",
		"":          "multiply in 16 bits (bfloat16) or in TF32, and nothing in 64 bits",
	}},
	Recompute: {ofModel, "low", "none", map[Framework]string{
		PyTorch: "checkpoint fewer layers (every second block), or none where memory allows: torch.utils.checkpoint only " +
			"around the largest activations; a smaller batch with accumulation instead",
		Lightning:   "remove configure_activation_checkpointing or gradient checkpointing where memory allows",
		HuggingFace: "TrainingArguments(gradient_checkpointing=False), or a smaller batch and accumulation",
		TensorFlow:  "tf.recompute_grad around the largest layers only",
		"":          "keep activations where memory allows, and recompute the largest ones only",
	}},
	Oversubscription: {ofCode, "low", "none", map[Framework]string{
		PyTorch: "torch.set_num_threads(<cores>) in the program and torch.set_num_threads(1) in worker_init_fn, or " +
			"OMP_NUM_THREADS, MKL_NUM_THREADS and OPENBLAS_NUM_THREADS in env: of the job file",
		TensorFlow: "tf.config.threading.set_intra_op_parallelism_threads(<cores>)",
		"":         "set OMP_NUM_THREADS, MKL_NUM_THREADS and OPENBLAS_NUM_THREADS in env: of the job file",
	}},
	Leak: {ofCode, "medium", "none", map[Framework]string{
		PyTorch: "keep no tensors with their graph: total += loss.item() or loss.detach(); bound lists of results and " +
			"caches; tracemalloc names the line",
		TensorFlow: "build no new graph or model in the loop; tf.keras.backend.clear_session() between models",
		"":         "bound lists and caches that grow with each step; tracemalloc names the line",
	}},
	MemoryPressure: {ofResources, "low", "none", map[Framework]string{
		"": "ask for more memory (resources.memory in the job file), or hold less: smaller shuffle buffers, fewer workers",
	}},
	SetUp: {ofCode, "medium", "none", map[Framework]string{
		PyTorch: "put packages into setup: or an image, prepare and download data once (a stage before, or a cache), " +
			"keep compiled code (TORCHINDUCTOR_CACHE_DIR in a kept folder)",
		HuggingFace: "HF_HOME in a kept folder, dataset.map(...) once in a stage before, packages in setup: or an image",
		TensorFlow:  "packages in setup: or an image, data prepared once in a stage before, dataset.cache(\"/local/path\")",
		"":          "put packages into setup: or an image, and prepare and download data once in a stage before",
	}},
	IdleAfter: {ofCode, "low", "none", map[Framework]string{
		"": "let the program exit when it is done (destroy process groups, join threads, no final wait), move what " +
			"follows to a small machine, and set idle: 10m in the job file",
	}},
	Blocked: {ofCode, "medium", "none", map[Framework]string{
		"": "find what the program waits for: scrimp exec JOB -- py-spy dump --pid PID; read ahead, ask several at once, " +
			"and no sleep in the loop",
	}},
	Straggler: {ofResources, "medium", "none", map[Framework]string{
		PyTorch: "give each rank the same work (DistributedSampler(drop_last=True), batches of equal length), and each " +
			"machine the same processors and disk; replace the slow machine",
		"": "give each rank the same work, and replace the slow machine",
	}},
	UnusedGPU: {ofResources, "low", "none", map[Framework]string{
		PyTorch:     "model.to(\"cuda\") and the batches too; torchrun --nproc_per_node=<GPUs> for all, or ask for fewer",
		Lightning:   "Trainer(accelerator=\"gpu\", devices=-1), or ask for fewer",
		HuggingFace: "start with torchrun or accelerate launch --num_processes=<GPUs>, or ask for fewer",
		TensorFlow:  "tf.distribute.MirroredStrategy(), or ask for fewer",
		"":          "use all GPUs, or ask for fewer (resources.accelerator)",
	}},
	Communication: {ofResources, "medium", "low", map[Framework]string{
		PyTorch: "accumulate gradients (fewer all-reduces: model.no_sync()), DDP(bucket_cap_mb=100, " +
			"gradient_as_bucket_view=True), register_comm_hook(None, default_hooks.bf16_compress_hook), larger machines",
		Lightning:   "Trainer(accumulate_grad_batches=8), DDPStrategy(gradient_as_bucket_view=True)",
		HuggingFace: "TrainingArguments(gradient_accumulation_steps=8, ddp_bucket_cap_mb=100)",
		"":          "accumulate gradients over several batches, or take fewer, larger machines",
	}},
	OversizedGPU: {ofResources, "low", "none", map[Framework]string{
		"": "a smaller GPU does the same work (resources.accelerator in the job file; scrimp offers lists prices), or " +
			"several jobs share this one",
	}},
	OversizedCPU: {ofResources, "low", "none", map[Framework]string{
		PyTorch: "a machine with fewer processors does the same work (resources.cpus in the job file), or use them: " +
			"torch.set_num_threads(<cores>), DataLoader(num_workers=<cores - 1>)",
		"": "a machine with fewer processors does the same work (resources.cpus in the job file), or use them all",
	}},
	OversizedMemory: {ofResources, "low", "none", map[Framework]string{
		"": "ask for less memory: resources.memory in the job file",
	}},
}

// Group returns the group of a class: data, model, code or resources.
func Group(c Class) string { return classes[c].group }

// Words returns the texts of a class for users of a framework.
func Words(c Class, f Framework) (change, effort, risk string) {
	k := classes[c]
	return k.change(f), k.effort, k.risk
}
