package manifest_test

import (
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/work/serving/load"
	"scrimp/internal/work/serving/manifest"
	"scrimp/internal/work/serving/simulation"
)

// Manifests are YAML of the right kind, and an HPA is refused for rules that it cannot express.
func TestManifests_SayWhatTheRuleSays(t *testing.T) {
	d := manifest.Deployment{Name: "chat", Metric: "in_flight", Prometheus: "http://p:9090"}
	rule := simulation.Rule{Kind: simulation.WarmHours, Batch: 8, Wait: 40 * time.Millisecond, Max: 4, WarmMin: 2, Warm: load.Hours{From: 8, To: 18},
		Keep: 5 * time.Minute, Poll: 15 * time.Second}
	if _, ok := manifest.HPA(rule, 1, d); ok {
		t.Error("an HPA scales to zero")
	}
	text, ok := manifest.KEDA(rule, 2, d)
	var k struct {
		Kind string
		Spec struct {
			Min      int `yaml:"minReplicaCount"`
			Max      int `yaml:"maxReplicaCount"`
			Poll     int `yaml:"pollingInterval"`
			Cooldown int `yaml:"cooldownPeriod"`
			Triggers []struct {
				Type     string
				Metadata map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &k); err != nil || !ok {
		t.Fatalf("%v: %s", err, text)
	}
	s := k.Spec
	if k.Kind != "ScaledObject" || s.Min != 0 || s.Max != 4 || s.Poll != 15 || s.Cooldown != 300 || len(s.Triggers) != 2 ||
		s.Triggers[0].Metadata["threshold"] != "16" || s.Triggers[0].Metadata["query"] != "sum(in_flight)" ||
		s.Triggers[1].Metadata["start"] != "0 8 * * *" || s.Triggers[1].Metadata["desiredReplicas"] != "2" {
		t.Errorf("%+v of %s", k, text)
	}
	rule.WarmMin, rule.Min, rule.Kind = 0, 1, simulation.Autoscale
	text, ok = manifest.HPA(rule, 1, d)
	var h struct {
		Kind string
		Spec struct {
			MinReplicas, MaxReplicas int `yaml:",omitempty"`
		}
	}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "Replicas", "replicas")), &h); err != nil || !ok || h.Kind != "HorizontalPodAutoscaler" {
		t.Errorf("%v: %s", err, text)
	}
	if !strings.Contains(text, "averageValue: \"8\"") || !strings.Contains(text, "minReplicas: 1\n  maxReplicas: 4\n") {
		t.Errorf("%s", text)
	}
}

// A manifest whose rule it can express whole has no note.
func TestCautions_AreOnlyWhereTheManifestDiffersFromThePlan(t *testing.T) {
	d := manifest.Deployment{Name: "chat", Metric: "in_flight"}
	auto := simulation.Rule{Kind: simulation.Autoscale, Batch: 1, Min: 1, Max: 4, Keep: time.Hour}
	if list := manifest.Cautions(auto, false, true, d); len(list) != 0 {
		t.Errorf("%q", list)
	}
	long, zero := auto, auto
	long.Keep = time.Hour + time.Second
	zero.Kind, zero.Min = simulation.ScaleToZero, 0
	for says, list := range map[string][]string{
		"1h at most":            manifest.Cautions(long, true, true, d),
		"no pod exports in_fli": manifest.Cautions(zero, true, true, d),
		"uncertain":             manifest.Cautions(auto, true, false, d),
	} {
		if len(list) != 1 || !strings.Contains(list[0], says) {
			t.Errorf("%q, want %q", list, says)
		}
	}
}
