package launcher

import "testing"

func TestRead_ParallelismOfLaunchers(t *testing.T) {
	for command, want := range map[string][4]string{
		"python train.py": {},
		"accelerate launch --use_fsdp --fsdp_sharding_strategy FULL_SHARD train.py":                   {FSDP},
		"accelerate launch --use_fsdp train.py":                                                       {FSDP},
		"accelerate launch --use_fsdp --fsdp_sharding_strategy=2 --mixed_precision bf16 train.py":     {Zero2},
		"accelerate launch --fsdp_sharding_strategy NO_SHARD --use_fsdp train.py":                     {None},
		"accelerate launch --use_deepspeed --zero_stage 3 train.py":                                   {Zero3},
		"accelerate launch --use_deepspeed train.py":                                                  {Zero2},
		"torchrun --nproc_per_node=8 train.py --fsdp 'full_shard auto_wrap' --gradient_checkpointing": {FSDP, "", "", Full},
		"torchrun train.py --fsdp \"shard_grad_op\"":                                                  {Zero2},
		"torchrun train.py --gradient_checkpointing False":                                            {"", "", "", None},
		"torchrun --standalone train.py --tensor-parallel-size 4 --pp 2":                              {"", "4", "2"},
		"torchrun train.py --tp=8":                                                                    {"", "8"},
		"torchrun train.py --tp top.yaml":                                                             {},
		"torchrun pretrain_gpt.py --tensor-model-parallel-size 8 \\\n --pipeline-model-parallel-size 4 --use-distributed-optimizer --recompute-granularity selective": {Zero1, "8", "4", Selective},
		"torchrun -m torchtitan.train --parallelism.tensor_parallel_degree 2 --activation_checkpoint.mode full":                                                       {"", "2", "", Full},
		"tune run --nproc_per_node 8 full_finetune_distributed --config llama3_1/8B_full":                                                                             {FSDP},
		"python train.py fit --trainer.strategy deepspeed_stage_3":                                                                                                    {Zero3},
		"python train.py --strategy ddp":                {None},
		"python train.py --strategy 2":                  {},
		"deepspeed train.py --deepspeed --zero-stage 1": {Zero1},
	} {
		s := Read(Words(command)).Settled()
		if got := [4]string{s.Sharding.Value, s.Tensor.Value, s.Pipeline.Value, s.Recompute.Value}; got != want {
			t.Errorf("%s\n says %q, it is %q", command, got, want)
		}
	}
}

func TestFile_FillsWhatNoFlagSets(t *testing.T) {
	for _, c := range []struct{ command, file, text, want, next string }{
		{"deepspeed train.py --deepspeed ds.json", "ds.json", `{"zero_optimization": {"stage": 3}, "tensor_parallel": {"autotp_size": 4}}`, Zero3, ""},
		{"deepspeed train.py --deepspeed_config ds.json --zero_stage 2", "ds.json", `{"zero_optimization": {"stage": 3}}`, Zero2, ""},
		{"deepspeed train.py --deepspeed_config ds.json", "ds.json", `{"train_batch_size": "auto"}`, "", ""},
		{"accelerate launch --use_deepspeed --deepspeed_config_file ds.json t.py", "ds.json", `{"zero_optimization": {"stage": 1}}`, Zero1, ""},
		{"accelerate launch --config_file fsdp.yaml t.py", "fsdp.yaml", "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n", Zero2, ""},
		{"accelerate launch --config_file fsdp.yaml t.py", "fsdp.yaml", "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n", FSDP, ""},
		{"accelerate launch --config_file d.yaml t.py", "d.yaml", "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n", Zero3, ""},
		{"accelerate launch --config_file d.yaml t.py", "d.yaml", "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n", "", "ds.json"},
		{"accelerate launch --config_file d.yaml t.py", "d.yaml", "distributed_type: MULTI_GPU\n", None, ""},
	} {
		s := Read(Words(c.command))
		if len(s.Files) != 1 || s.Files[0] != c.file {
			t.Errorf("%s names %q", c.command, s.Files)
			continue
		}
		next, err := s.File(c.file, []byte(c.text))
		if got := s.Settled().Sharding.Value; err != nil || got != c.want || next != c.next {
			t.Errorf("%s with %s: %q and then %q (%v), it is %q and %q", c.command, c.text, got, next, err, c.want, c.next)
		}
	}
	var s Settings
	if _, err := s.File("x.json", []byte("{")); err == nil {
		t.Error("half a file is read")
	}
}

func FuzzRead(f *testing.F) {
	f.Add("a --fsdp '", "x: [")
	f.Fuzz(func(t *testing.T, command, text string) {
		s := Read(Words(command))
		_, _ = s.File("f", []byte(text))
		if Stage(s.Settled().Sharding.Value) > 3 {
			t.Fatal(s)
		}
	})
}
