//go:build !local

package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/lane"

	"go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/engine/kube/record"
	"scrimp/internal/engine/order"
	"scrimp/internal/test/must"
)

// jobOf returns the Job for the given number of machines of the only pool, which is written as YAML with other
// settings.
func jobOf(t *testing.T, pools, rest string, nodes int) (*Template, *record.Record, *batchv1.Job) {
	t.Helper()
	set := engine.Setting{Name: "k8s", Kind: pool.Kind}
	text := "{image: user:1, agent_image: scrimp:1, " + rest + "pools: [" + pools + "]}"
	must.Do(t, yaml.Unmarshal([]byte(text), &set.With))
	w, err := pool.Read(&set)
	must.Do(t, err)
	m := &Template{Engine: "k8s", With: &w}
	s := w.Sales("k8s", time.Now())[0]
	r := &record.Record{Order: order.Order{Key: "a.1", Nodes: nodes, Tags: map[string]string{
		"scrimp-installation": "i1", "scrimp-job": "train", "team": "vision & sound"}}, Name: record.NameOf("a.1"), UID: "uid"}
	j := m.Job(r, &s, map[string]string{"SCRIMP_SERVER": "http://server"})
	return m, r, j
}

// A spot pool's pods select its cloud's spot nodes and tolerate their taints; those of on-demand pools do not.
func TestPods_SelectTheNodesOfTheirCloud(t *testing.T) {
	lane.Component(t, "whole")
	for pool, want := range map[string]string{
		"cloud: eks, capacity: spot":       "eks.amazonaws.com/capacityType=SPOT",
		"cloud: eks":                       "eks.amazonaws.com/capacityType=ON_DEMAND",
		"cloud: karpenter, capacity: spot": "karpenter.sh/capacity-type=spot",
		"cloud: karpenter":                 "karpenter.sh/capacity-type=on-demand",
		"cloud: gke, capacity: spot":       "cloud.google.com/gke-spot=true cloud.google.com/gke-spot=true:NoSchedule",
		"cloud: gke":                       "",
		"cloud: aks, capacity: spot": "kubernetes.azure.com/scalesetpriority=spot " +
			"kubernetes.azure.com/scalesetpriority=spot:NoSchedule",
		"cloud: aks": "",
		"selector: {a: b}, tolerations: [c, d=e:NoExecute]": "a=b c=: d=e:NoExecute",
		"accelerator: L4, accelerators: 1":                  "nvidia.com/gpu=:NoSchedule",
	} {
		_, _, j := jobOf(t, "{name: p, cpus: 1, memory: 1GiB, "+pool+"}", "", 1)
		spec := &j.Spec.Template.Spec
		said := strings.Fields(labels.Set(spec.NodeSelector).String())
		for _, o := range spec.Tolerations {
			if o.TolerationSeconds == nil {
				said = append(said, fmt.Sprintf("%s=%s:%s", o.Key, o.Value, o.Effect))
			} else if *o.TolerationSeconds != unreachableSeconds {
				t.Errorf("%s: of a node that does not answer it bears %v", pool, o)
			}
		}
		if got := strings.Join(said, " "); got != want {
			t.Errorf("%s goes to %q, want %q", pool, got, want)
		}
	}
}

// A pool's settings appear in its pods. All objects carry their owner and are deleted with the record.
func TestJob_FollowsItsPool(t *testing.T) {
	lane.Component(t, "whole")
	m, r, j := jobOf(t, "{name: p, cpus: 8, memory: 32GiB, capacity: spot, grace: 60s, time: 24h, shm: 4GiB, "+
		"disk: 100GiB, queue: vision, priority_class: low, runtime_class: nvidia, spread: topology.kubernetes.io/zone, "+
		"accelerator: L4, accelerators: 4, split: [1, 4]}",
		"user: 1000, pull_secrets: [registry], volumes: [{claim: datasets, path: /data, read_only: true}], ", 3)
	p := &j.Spec.Template.Spec
	spread := p.TopologySpreadConstraints[0]
	main := &p.Containers[0]
	asks := func(name corev1.ResourceName) string { q := main.Resources.Requests[name]; return q.String() }
	for name, ok := range map[string]bool{
		"indexed": *j.Spec.CompletionMode == batchv1.IndexedCompletion && *j.Spec.Completions == 3 &&
			*j.Spec.Parallelism == 3,
		"no second try": *j.Spec.BackoffLimitPerIndex == 0 && *j.Spec.PodReplacementPolicy == batchv1.Failed &&
			p.RestartPolicy == "Never",
		"disruptions": j.Spec.PodFailurePolicy.Rules[0].Action == batchv1.PodFailurePolicyActionFailIndex &&
			j.Spec.PodFailurePolicy.Rules[0].OnPodConditions[0].Type == corev1.DisruptionTarget,
		"queue":        *j.Spec.Suspend && j.Labels["kueue.x-k8s.io/queue-name"] == "vision",
		"grace":        *p.TerminationGracePeriodSeconds == 60,
		"lifetime":     *p.ActiveDeadlineSeconds == 24*3600,
		"class":        p.PriorityClassName == "low" && *p.RuntimeClassName == "nvidia",
		"pull secrets": p.ImagePullSecrets[0].Name == "registry",
		"gang": p.Subdomain == r.Name && spread.TopologyKey == "topology.kubernetes.io/zone" &&
			spread.WhenUnsatisfiable == "ScheduleAnyway",
		"no token": !*p.AutomountServiceAccountToken && *p.SecurityContext.RunAsUser == 1000 &&
			*p.SecurityContext.RunAsNonRoot,
		"agent": p.InitContainers[0].Image == "scrimp:1" && main.Image == "user:1" &&
			main.Command[0] == "/run/scrimp/bin/scrimp",
		"requests":  asks("cpu") == "8" && asks("memory") == "34359738368" && asks("nvidia.com/gpu") == "4",
		"disk":      asks("ephemeral-storage") == "107374182400" && main.Resources.Limits.Cpu().IsZero(),
		"not moved": j.Spec.Template.Annotations["karpenter.sh/do-not-disrupt"] == "true",
	} {
		if !ok {
			t.Errorf("%s: %+v", name, j.Spec)
		}
	}
	has := func(name string, ok func(v *corev1.Volume) bool) {
		if !slices.ContainsFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == name && ok(&v) }) {
			t.Errorf("volume %s is not as it should be in %+v", name, p.Volumes)
		}
	}
	has("shm", func(v *corev1.Volume) bool {
		return v.EmptyDir.Medium == "Memory" && v.EmptyDir.SizeLimit.Value() == 4<<30
	})
	has("token", func(v *corev1.Volume) bool { return v.Projected.Sources[0].Secret.Name == r.Name })
	has("claim-0", func(v *corev1.Volume) bool {
		return v.PersistentVolumeClaim.ClaimName == "datasets" && v.PersistentVolumeClaim.ReadOnly
	})
	secret, err := m.Secret(r, "t")
	must.Do(t, err)
	for name, o := range map[string]metav1.ObjectMeta{"Job": j.ObjectMeta, "pod": j.Spec.Template.ObjectMeta,
		"Secret": secret.ObjectMeta, "Service": m.Service(r).ObjectMeta} {
		if o.Labels[client.LabelManaged] != "scrimp" || o.Labels[client.LabelEngine] != "k8s" ||
			o.Labels[client.LabelInstallation] != "i1" ||
			o.Labels[client.LabelJob] != "train" || o.Labels[client.LabelRecord] != "uid" ||
			o.Annotations["scrimp.dev/tag-team"] != "vision & sound" {
			t.Errorf("the %s carries %v, %v", name, o.Labels, o.Annotations)
		}
		owned := len(o.OwnerReferences) == 1 && o.OwnerReferences[0].UID == r.UID
		if owned == (name == "pod") { // its Job owns it
			t.Errorf("the %s is owned by %v", name, o.OwnerReferences)
		}
	}
}
