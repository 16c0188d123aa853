//go:build !local

// Package manifest builds the objects of a request: its Job, the Secret with its token and the Service of a gang.
package manifest

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/engine/kube/record"
	"scrimp/internal/lib/size"
)

// Paths of scrimp's files in a pod.
const (
	tokenFolder = "/run/scrimp-token"
	agentProg   = "/usr/bin/scrimp" // in the agent's image
	mainName    = "program"
	initName    = "agent"
	tokenKey    = "token"
	caKey       = "ca.crt"
)

// unreachableSeconds is how many seconds a pod stays on a node that does not answer: its agent may continue, but nobody
// knows.
const unreachableSeconds = 30

// Template is what the manifests of all requests of an engine have in common.
type Template struct {
	Engine string // its name
	Server string // the server's address, as given to agents
	With   *pool.With
}

// Secret holds the token by which a request's machines are admitted. Only the init container reads it.
func (t *Template) Secret(r *record.Record, token string) (*corev1.Secret, error) {
	s := &corev1.Secret{ObjectMeta: r.Owned(t.Engine), StringData: map[string]string{tokenKey: token}}
	if t.With.CA == "" {
		return s, nil
	}
	trusted, err := os.ReadFile(t.With.CA)
	s.StringData[caKey] = string(trusted)
	return s, err
}

// Service gives the pods of a gang names: NAME-0.NAME is the one with index 0.
func (t *Template) Service(r *record.Record) *corev1.Service {
	return &corev1.Service{ObjectMeta: r.Owned(t.Engine), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone,
		PublishNotReadyAddresses: true, Selector: map[string]string{client.LabelRecord: string(r.UID)}}}
}

// Job returns the Job to run: a pod for each machine, once. It restarts none, because scrimp decides where a job
// continues.
func (t *Template) Job(r *record.Record, s *pool.Sale, env map[string]string) *batchv1.Job {
	nodes, mode, none := int32(r.Nodes), batchv1.IndexedCompletion, int32(0)
	replace, ttl := batchv1.Failed, int32(time.Hour/time.Second)
	head := r.Owned(t.Engine)
	j := &batchv1.Job{ObjectMeta: head, Spec: batchv1.JobSpec{
		Completions: &nodes, Parallelism: &nodes, CompletionMode: &mode, BackoffLimitPerIndex: &none,
		TTLSecondsAfterFinished: &ttl, PodReplacementPolicy: &replace,
		PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action: batchv1.PodFailurePolicyActionFailIndex,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget,
				Status: corev1.ConditionTrue}},
		}}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: head.Labels, Annotations: map[string]string{
			"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}},
			Spec: t.pod(r, s, env)},
	}}
	j.Labels[client.LabelPool] = s.Of.Name // of the pods, too: they have the same labels
	for k, v := range head.Annotations {
		j.Spec.Template.Annotations[k] = v
	}
	if s.Of.Queue != "" {
		suspended := true
		j.Labels["kueue.x-k8s.io/queue-name"], j.Spec.Suspend = s.Of.Queue, &suspended
	}
	return j
}

// pod returns the specification of a machine's pod.
func (t *Template) pod(r *record.Record, s *pool.Sale, env map[string]string) corev1.PodSpec {
	no, yes, p := false, true, s.Of
	grace := int64(time.Duration(p.Grace) / time.Second)
	image := cmp.Or(r.Image, p.Image, t.With.Image)
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
		AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
		NodeSelector: p.Selectors(), Tolerations: tolerations(p), PriorityClassName: p.PriorityClass,
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &t.With.User, RunAsGroup: &t.With.User,
			FSGroup: &t.With.User, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		InitContainers: []corev1.Container{t.first()},
		Containers:     []corev1.Container{t.main(r, s, image, env)},
		Volumes:        t.volumes(r, s),
	}
	if p.Time > 0 {
		life := int64(time.Duration(p.Time) / time.Second)
		spec.ActiveDeadlineSeconds = &life
	}
	if p.RuntimeClass != "" {
		spec.RuntimeClassName = &p.RuntimeClass
	}
	for _, name := range t.With.PullSecrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	if r.Nodes > 1 {
		spec.Subdomain = r.Name
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: p.Spread,
			WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{client.LabelRecord: string(r.UID)}}}}
	}
	return spec
}

// volumes returns the pod's volumes.
func (t *Template) volumes(r *record.Record, s *pool.Sale) []corev1.Volume {
	shm := resource.MustParse(pool.AmountOf(cmp.Or(s.Of.ShmSize, s.Memory/2)))
	mode := int32(0o440)
	list := []corev1.Volume{
		{Name: "scrimp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "shm", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
			Medium: corev1.StorageMediumMemory, SizeLimit: &shm}}},
		{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode,
			Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: r.Name}}}}}}},
	}
	for n, v := range t.With.Volumes {
		list = append(list, corev1.Volume{Name: "claim-" + strconv.Itoa(n), VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.Claim, ReadOnly: v.ReadOnly}}})
	}
	return list
}

// confined returns the security context that the restricted profile requires.
func confined() *corev1.SecurityContext {
	no := false
	return &corev1.SecurityContext{AllowPrivilegeEscalation: &no,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
}

// first is the init container: it puts the agent and its token where the program's container finds them, and checks
// that the server can be reached.
func (t *Template) first() corev1.Container {
	small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"),
		corev1.ResourceMemory: resource.MustParse("64Mi")}
	command := []string{agentProg, "agent", "place", pool.RunFolder, "--token", tokenFolder + "/" + tokenKey, "--server",
		t.Server}
	if t.With.CA != "" {
		command = append(command, "--ca", tokenFolder+"/"+caKey)
	}
	return corev1.Container{Name: initName, Image: t.With.AgentImage, ImagePullPolicy: corev1.PullIfNotPresent,
		Command:                  command,
		Resources:                corev1.ResourceRequirements{Requests: small},
		SecurityContext:          confined(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts: []corev1.VolumeMount{{Name: "scrimp", MountPath: pool.RunFolder},
			{Name: "token", MountPath: tokenFolder, ReadOnly: true}}}
}

// main is the program's container, in which the agent starts the program.
func (t *Template) main(r *record.Record, s *pool.Sale, image string, env map[string]string) corev1.Container {
	requests := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(s.Milli, resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse(pool.AmountOf(s.Memory))}
	limits := corev1.ResourceList{corev1.ResourceMemory: requests[corev1.ResourceMemory]}
	if n := s.Offer.Accelerators; n > 0 {
		name := corev1.ResourceName(s.Of.Resource)
		requests[name] = *resource.NewQuantity(int64(n), resource.DecimalSI)
		limits[name] = requests[name]
	}
	if s.Of.DiskSize > 0 {
		requests[corev1.ResourceEphemeralStorage] = resource.MustParse(pool.AmountOf(s.Of.DiskSize / size.Bytes(s.Part)))
	}
	mounts := []corev1.VolumeMount{{Name: "scrimp", MountPath: pool.RunFolder}, {Name: "tmp", MountPath: "/tmp"},
		{Name: "shm", MountPath: "/dev/shm"}}
	for n, v := range t.With.Volumes {
		mounts = append(mounts, corev1.VolumeMount{Name: "claim-" + strconv.Itoa(n), MountPath: v.Path, ReadOnly: v.ReadOnly})
	}
	return corev1.Container{Name: mainName, Image: image, Command: []string{pool.RunFolder + "/bin/scrimp", "agent"},
		ImagePullPolicy: corev1.PullIfNotPresent, WorkingDir: pool.RunFolder + "/machine",
		Env: t.env(r, env), Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
		SecurityContext: confined(), VolumeMounts: mounts,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError}
}

// env returns the agent's environment, which contains no secret.
func (t *Template) env(r *record.Record, env map[string]string) []corev1.EnvVar {
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	list := []corev1.EnvVar{
		{Name: "SCRIMP_POD_INDEX", ValueFrom: field("metadata.annotations['batch.kubernetes.io/job-completion-index']")},
		{Name: "SCRIMP_ADDRESS", ValueFrom: field("status.podIP")},
		{Name: "SCRIMP_INSTANCE_ID", Value: fmt.Sprintf("%s-%s-$(SCRIMP_POD_INDEX)", t.Engine, r.Name)},
		{Name: "SCRIMP_SERVER", Value: env["SCRIMP_SERVER"]},
		{Name: "SCRIMP_TASK_USER", Value: env["SCRIMP_TASK_USER"]},
		{Name: "SCRIMP_MACHINE_DIR", Value: pool.RunFolder + "/machine"},
		{Name: "SCRIMP_NOTICE", Value: r.Notice.String()},
		{Name: "SCRIMP_TERM_ONCE", Value: "1"},
		{Name: "HOME", Value: "/tmp"},
	}
	if t.With.CA != "" {
		list = append(list, corev1.EnvVar{Name: "SCRIMP_CA", Value: pool.RunFolder + "/" + caKey})
	}
	return list
}

// tolerations returns the taints that a pod of the pool tolerates, and for how long a node may be unreachable.
func tolerations(p *pool.Pool) []corev1.Toleration {
	away := int64(unreachableSeconds)
	list := []corev1.Toleration{
		{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			TolerationSeconds: &away},
		{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			TolerationSeconds: &away},
	}
	for _, text := range p.Taints() {
		m := pool.Tolerated.FindStringSubmatch(text)
		t := corev1.Toleration{Key: m[1], Effect: corev1.TaintEffect(m[3]), Operator: corev1.TolerationOpExists}
		if strings.Contains(text, "=") {
			t.Operator, t.Value = corev1.TolerationOpEqual, m[2]
		}
		list = append(list, t)
	}
	return list
}
