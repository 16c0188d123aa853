package lane

// A Suite is the set of tests that share one real component.
type Suite struct {
	Name  string
	Needs string // the real component, in words
	// Packages lists folders whose unmarked tests belong to the suite, because the commit lane does not compile most of
	// them: they have the constraint !local.
	Packages []string
	// Inputs lists the files and folders that decide what the suite shows: where none of them changed since the last
	// green run, the suite does not run again.
	Inputs []string
}

// common is part of the inputs of every suite that runs jobs: the agent, what it says to the server, and the contract
// of drivers.
var common = []string{
	"go.mod", "internal/test/eventually", "internal/test/enginetest", "internal/test/fast", "internal/test/lane",
	"internal/test/port", "internal/test/proc", "internal/test/testbin", "internal/wire/api", "internal/agent",
	"internal/lib/child", "internal/lib/durable", "internal/engine/driver.go", "internal/engine/hostd", "internal/control",
}

// Suites lists every suite of the component lane, in the order in which they run.
var Suites = []Suite{
	{
		Name: "host", Needs: "root on Linux, git, curl, bash, setsid, pgrep, chromium, Debian's packaging tools",
		Inputs: append([]string{"internal/lib/confined", "internal/job/ignore", "internal/decide/receipt",
			"internal/store/backup", "internal/server", "internal/cli", "internal/content/checkpoint", "internal/engine/local",
			"hack/dist", "hack/paired", "client"}, common...),
	},
	{
		Name: "browser", Needs: "chromium, axe-core",
		Inputs: []string{"go.mod", "internal/server/pages", "internal/server/dashboard.go",
			"internal/server/dashboard_browser_test.go", "internal/server/world_test.go",
			"internal/server/outlook_test.go", "internal/server/forecast", "internal/test/browser",
			"internal/test/eventually", "internal/test/lane", "internal/lib/draw", "client", "internal/cli/show/purchase",
			"internal/work/own"},
	},
	{
		Name: "whole", Needs: "nothing but Go: the packages that the tag local leaves out",
		Packages: []string{"internal/engine/aws/ec2decode", "internal/engine/aws/identity", "internal/engine/kube/pool"},
		Inputs: []string{"go.mod", "internal/test/lane", "internal/cli/export", "internal/cli/bill",
			"internal/cli/kube_test.go", "internal/cli/engines", "internal/engine/aws", "internal/engine/kube",
			"internal/content/blob", "internal/content/billfile", "internal/store",
			"internal/cli/upgrade_test.go", "internal/cli/testdata/upgrade", "internal/control", "internal/lib/identity"},
	},
	{
		Name: "python", Needs: "python3 with venv and pip, python3-optuna, jupyter-notebook",
		Inputs: append([]string{"sdk", "docs", "README.md", "internal/test/docs", "internal/job/scaffold", "examples",
			"internal/cli/show/tracking", "internal/cli/tune", "internal/work/study", "internal/work/studyfile"},
			common...),
	},
	{
		Name: "pytorch", Needs: "python3-torch, python3-onnx, ONNX Runtime",
		Inputs: append([]string{"examples/pytorch", "examples/tune-torch", "examples/compress", "sdk",
			"internal/work/onnx", "internal/work/compress", "internal/cli/compress",
			"internal/test/onnxrun", "internal/work/loop",
			"internal/work/tune", "internal/work/study", "internal/work/studyfile", "internal/work/propose",
			"internal/work/diagnose", "internal/cli/testdata/diagnose", "internal/work/ab", "internal/cli/testdata/ab",
			"internal/job/launcher", "internal/content/checkpoint", "internal/estimate"}, common...),
	},
	{
		Name: "ssh", Needs: "openssh-server, iproute2 and root",
		Inputs: append([]string{"internal/engine/ssh", "internal/engine/procs", "internal/test/sshtest", "test/ssh-up.sh",
			"test/ssh-down.sh"}, common...),
	},
	{
		Name: "slurm", Needs: "slurmctld, slurmd, slurmrestd, munge and root",
		Inputs: append([]string{"internal/engine/slurm", "internal/test/slurmtest", "test/slurm-up.sh", "test/slurm-down.sh"},
			common...),
	},
	{
		Name: "postgres", Needs: "PostgreSQL",
		Inputs: append([]string{"internal/store", "internal/test/storetest", "internal/test/pgtest", "internal/server",
			"internal/view", "internal/decide/state"}, common...),
	},
	{
		Name: "objects", Needs: "servers of S3, Google Cloud Storage and Azure Blob",
		Inputs: append([]string{"internal/content/blob", "internal/content/billfile", "internal/test/blobtest",
			"internal/content/checkpoint", "internal/agent/datacache",
			"internal/server", "internal/lib/awshttp", "internal/engine/aws", "internal/cli/bucket_test.go"}, common...),
	},
	{
		Name: "aws", Needs: "the emulated EC2, ec2-metadata-mock, iproute2 and root",
		Packages: []string{"internal/engine/aws", "internal/test/awstest", "internal/engine/aws/policy"},
		Inputs:   append([]string{"internal/engine/aws", "internal/test/awstest", "internal/lib/awshttp"}, common...),
	},
	{
		Name: "kubernetes", Needs: "a real control plane, kubelet, containerd and root",
		Packages: []string{"internal/engine/kube", "internal/test/image", "internal/test/kubetest", "deploy"},
		Inputs: append([]string{"internal/engine/kube", "internal/test/image", "internal/test/kubetest", "deploy",
			"hack/kubeimage", "test/kube-up.sh", "test/kube-down.sh", "test/kube-node.sh", "test/kube-build.sh",
			"test/kube-stages.yaml"}, common...),
	},
}
