package lane

// A Suite is the set of tests that share one real component.
type Suite struct {
	Name  string
	Needs string // the real component, in words
	// Packages lists folders whose tests all belong to the suite, marked or not, because the commit lane does not compile
	// them: everything in them has the constraint !local.
	Packages []string
	// Inputs lists the files and folders that decide what the suite shows: where none of them changed since the last
	// green run, the suite does not run again.
	Inputs []string
}

// common is part of the inputs of every suite that runs jobs: the agent, what it says to the server, and the contract
// of drivers.
var common = []string{
	"go.mod", "internal/test", "internal/await", "internal/api", "internal/agent", "internal/child",
	"internal/engine/driver.go",
	"internal/engine/enginetest", "internal/engine/hostd", "internal/control",
}

// Suites lists every suite of the component lane, in the order in which they run.
var Suites = []Suite{
	{
		Name: "host", Needs: "root on Linux, git, curl, bash, setsid, pgrep, chromium, Debian's packaging tools",
		Inputs: append([]string{"internal/confined", "internal/ignore", "internal/receipt", "internal/store/backup",
			"internal/server", "internal/cli", "internal/checkpoint", "internal/engine/local", "hack/dist", "hack/paired",
			"client"}, common...),
	},
	{
		Name: "python", Needs: "python3 with venv and pip",
		Inputs: append([]string{"sdk", "docs", "README.md", "internal/docs", "internal/scaffold", "examples"}, common...),
	},
	{
		Name: "pytorch", Needs: "python3-torch",
		Inputs: append([]string{"examples/pytorch", "sdk", "internal/launcher", "internal/checkpoint"}, common...),
	},
	{
		Name: "ssh", Needs: "openssh-server, iproute2 and root",
		Inputs: append([]string{"internal/engine/ssh", "internal/engine/procs", "test/ssh-up.sh", "test/ssh-down.sh"},
			common...),
	},
	{
		Name: "slurm", Needs: "slurmctld, slurmd, slurmrestd, munge and root",
		Inputs: append([]string{"internal/engine/slurm", "test/slurm-up.sh", "test/slurm-down.sh"}, common...),
	},
	{
		Name: "postgres", Needs: "PostgreSQL",
		Inputs: append([]string{"internal/store", "internal/server", "internal/view", "internal/state"}, common...),
	},
	{
		Name: "objects", Needs: "servers of S3, Google Cloud Storage and Azure Blob",
		Inputs: append([]string{"internal/blob", "internal/checkpoint", "internal/server", "internal/awshttp",
			"internal/engine/aws"},
			common...),
	},
	{
		Name: "aws", Needs: "the emulated EC2, ec2-metadata-mock, iproute2 and root",
		Packages: []string{"internal/engine/aws", "internal/engine/aws/answer", "internal/engine/aws/awstest",
			"internal/engine/aws/policy"},
		Inputs: append([]string{"internal/engine/aws", "internal/awshttp"}, common...),
	},
	{
		Name: "kubernetes", Needs: "a real control plane, kubelet, containerd and root",
		Packages: []string{"internal/engine/kube", "internal/engine/kube/image", "internal/engine/kube/kubetest", "deploy"},
		Inputs: append([]string{"internal/engine/kube", "deploy", "hack/kubeimage", "test/kube-up.sh", "test/kube-down.sh",
			"test/kube-node.sh", "test/kube-build.sh", "test/kube-stages.yaml"}, common...),
	},
}
