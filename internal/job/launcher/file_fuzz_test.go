package launcher

import (
	"reflect"
	"testing"
)

// A launcher's configuration file is read or refused, including one with multiplying aliases.
func FuzzFile(f *testing.F) {
	for _, text := range []string{"distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: FULL_SHARD}\n",
		`{"zero_optimization":{"stage":3},"tensor_parallel":{"autotp_size":8}}`, "distributed_type: DEEPSPEED\ndeepspeed_config: " +
			"{zero_stage: 2, deepspeed_config_file: ds.json}", "a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]", "a: &a {b: *a}", "- 1", "{"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s Settings
		if _, err := s.File("accelerate.yaml", text); err != nil && !reflect.DeepEqual(s, Settings{}) {
			t.Errorf("%q is refused and said %+v", text, s)
		}
	})
}
