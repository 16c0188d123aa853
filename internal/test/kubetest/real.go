package kubetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/image"
	"scrimp/internal/test/must"
)

// RealNode is a node in namespaces of this host, with containerd and a kubelet.
type RealNode struct {
	Name string
	Host string // address of this host for its pods
	c    *Cluster
	env  []string
}

// RealNode adds a real node with labels like a=b, and waits until it is ready. It has the imported images. It skips
// the test if real nodes are not possible.
func (c *Cluster) RealNode(t testing.TB, name string, labels ...string) *RealNode {
	t.Helper()
	n := Node{Name: name, Labels: map[string]string{}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		n.Labels[key] = value
	}
	return c.Real(t, n)
}

// Real adds a real node. It has the processors and memory of this host; its GPUs have no devices.
func (c *Cluster) Real(t testing.TB, n Node) *RealNode {
	t.Helper()
	if why := unreal(); why != "" {
		t.Skipf("a real node: %s", why)
	}
	if n.CPU != "" || n.Memory != "" {
		t.Fatalf("real node %s has the processors and the memory of this machine", n.Name)
	}
	pause := filepath.Join(c.Dir, "pause.tar")
	if _, err := os.Stat(pause); err != nil {
		m, err := image.Pause("localhost/pause:1")
		if err == nil {
			err = m.Write(pause)
		}
		must.Do(t, err)
	}
	var labels []string
	for key, value := range n.Labels {
		labels = append(labels, key+"="+value)
	}
	r := &RealNode{Name: n.Name, c: c, env: []string{"PAUSE=" + pause, fmt.Sprint("GPUS=", n.GPUs),
		"LABELS=" + strings.Join(labels, ","), "TAINTS=" + strings.Join(n.Taints, ",")}}
	r.PowerOn(t)
	host, err := os.ReadFile(filepath.Join(c.Dir, "nodes", n.Name, "host"))
	must.Do(t, err)
	r.Host = strings.TrimSpace(string(host))
	c.real = append(c.real, r)
	for _, file := range c.images {
		r.do(t, "-import", file)
	}
	return r
}

// unreal returns why real nodes are not possible here; "": they are.
func unreal() string {
	if os.Geteuid() != 0 {
		return "not root"
	}
	for _, name := range []string{"containerd", "runc", "ctr", "ip", "iptables", "nsenter", image.Busybox} {
		if _, err := exec.LookPath(name); err != nil {
			return name + " is not installed: apt-get install containerd runc containernetworking-plugins " +
				"iproute2 iptables busybox-static"
		}
	}
	for _, file := range []string{"/usr/lib/cni/ptp", Program("kubelet")} {
		if _, err := os.Stat(file); err != nil {
			return file + " is not installed: apt-get install containernetworking-plugins, and test/kube-build.sh builds kubelet"
		}
	}
	return ""
}

// Import imports images into all present and later real nodes. A pod with one must have the pull policy IfNotPresent
// or Never, because there is no registry.
func (c *Cluster) Import(t testing.TB, images ...image.Image) {
	t.Helper()
	for _, m := range images {
		file := filepath.Join(c.Dir, fmt.Sprintf("image-%d.tar", len(c.images)))
		must.Do(t, m.Write(file))
		c.images = append(c.images, file)
		for _, r := range c.real {
			r.do(t, "-import", file)
		}
	}
}

// Enter runs a command on the node, such as ps or ctr.
func (r *RealNode) Enter(t testing.TB, command ...string) string {
	t.Helper()
	return r.do(t, "-enter", command...)
}

// Cut takes the node with its pods off the network; its processes continue.
func (r *RealNode) Cut(t testing.TB) { t.Helper(); r.do(t, "-cut") }

// Join reconnects it.
func (r *RealNode) Join(t testing.TB) { t.Helper(); r.do(t, "-join") }

// PowerOff kills the node and everything on it. Its Node object stays and soon is not ready.
func (r *RealNode) PowerOff(t testing.TB) { t.Helper(); r.do(t, "-down") }

// PowerOn starts it again with its disk unchanged.
func (r *RealNode) PowerOn(t testing.TB) { t.Helper(); r.do(t, "") }

func (r *RealNode) do(t testing.TB, verb string, args ...string) string {
	t.Helper()
	args = append([]string{r.c.Dir, r.Name}, args...)
	if verb != "" {
		args = append([]string{verb}, args...)
	}
	out, err := r.c.run("kube-node.sh", args, r.env...)
	if err != nil {
		t.Fatalf("kube-node.sh %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}
