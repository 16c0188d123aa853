//go:build !local && linux

package awstest_test

import (
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/test/awstest"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
)

// machines starts a cloud whose instances are processes, or skips the test if that is not possible.
func machines(t *testing.T, o awstest.Options) (c *cloud, dir string) {
	t.Helper()
	_, err := exec.LookPath("ec2-metadata-mock")
	if os.Geteuid() != 0 || os.Getenv("SCRIMP_EC2_METADATA_MOCK") == "" && err != nil {
		t.Skip("not root, or ec2-metadata-mock is not installed (SCRIMP_EC2_METADATA_MOCK): instances cannot be processes")
	}
	dir = t.TempDir()
	o.Run, o.Now, o.Net = &awstest.Run{Dir: dir}, time.Now, "10.213.0.0/16"
	return start(t, o), dir
}

func (c *cloud) console(t *testing.T, id string) string {
	t.Helper()
	out, err := c.ec2.GetConsoleOutput(t.Context(), &ec2.GetConsoleOutputInput{InstanceId: &id})
	must.Do(t, err)
	text, err := base64.StdEncoding.DecodeString(aws.ToString(out.Output))
	must.Do(t, err)
	return string(text)
}

const imds = `
get() { T=$(curl -sS -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token)
	curl -sS -f -H "X-aws-ec2-metadata-token: $T" http://169.254.169.254/latest/$1; }
`

func TestRun_InstanceIsAMachineOfItsOwn(t *testing.T) {
	c, dir := machines(t, awstest.Options{})
	in := spot("g5.xlarge", "")
	in.UserData = script(imds + `
echo "id $(get meta-data/instance-id) zone $(get meta-data/placement/availability-zone) $(get meta-data/local-ipv4)"
echo "life $(get meta-data/instance-life-cycle) doc $(get dynamic/instance-identity/document | tr -d ' \n')"
echo "data $(get user-data | head -c 9)"
curl -s -o /dev/null -w 'without token %{http_code}\n' http://169.254.169.254/latest/meta-data/instance-id
echo "pid $$ $(hostname) $(ls /opt | wc -l)"; touch /opt/mine /var/lib/mine /tmp/mine /run/mine
until get meta-data/spot/instance-action 2>/dev/null; do sleep 0.1; done
echo noticed
trap 'echo told to stop; exit 0' TERM
sleep 1000 & wait
`)
	i := c.run(t, in)[0]
	eventually.True(t, "user data runs", func() bool { return strings.Contains(c.console(t, *i.InstanceId), "pid ") },
		func() string { return c.console(t, *i.InstanceId) })
	eventually.True(t, "its files are its own", func() bool {
		_, err := os.Stat(filepath.Join(dir, *i.InstanceId, "run/mine"))
		return err == nil
	})
	if _, err := os.Stat("/opt/mine"); err == nil {
		t.Error("its files are this machine's too")
	}
	text := c.console(t, *i.InstanceId)
	for _, want := range []string{"id " + *i.InstanceId + " zone us-east-1a " + *i.PrivateIpAddress, "life spot",
		`"instanceType":"g5.xlarge"`, "data #!/bin/sh", "without token 401", " ip-10-213-"} {
		if !strings.Contains(text, want) {
			t.Errorf("console lacks %q:\n%s", want, text)
		}
	}
	must.Do(t, c.Interrupt(*i.InstanceId, ""))
	eventually.True(t, "the notice is in the metadata", func() bool {
		return strings.Contains(c.console(t, *i.InstanceId),
			"noticed")
	},
		func() string { return c.console(t, *i.InstanceId) })
	must.Do(t, c.Terminate(*i.InstanceId))
	eventually.True(t, "it ends", func() bool {
		return c.see(t,
			*i.InstanceId).State.Name == types.InstanceStateNameTerminated
	})
	if text := c.console(t, *i.InstanceId); !strings.Contains(text, "told to stop") {
		t.Errorf("its processes had no SIGTERM:\n%s", text)
	}
	nothingLeft(t, dir)
}

func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("left in the folder: %v %v", list, err)
	}
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("a mount is left: %v", err)
	}
	out, err := exec.Command("sh", "-c", "ip netns list; ip addr").Output()
	if err != nil || strings.Contains(string(out), "10.213.0.2") || strings.Contains(string(out), "10.213.0.1/30") {
		t.Errorf("left of the network: %v\n%s", err, out)
	}
}

func TestRun_InstanceEndsAfterItsOwnShutdown(t *testing.T) {
	c, dir := machines(t, awstest.Options{})
	in := one("m7i.large")
	in.InstanceInitiatedShutdownBehavior = types.ShutdownBehaviorTerminate
	in.UserData = script("sleep 1000 &\necho done\nshutdown -h now\nsleep 1000\n")
	id := *c.run(t, in)[0].InstanceId
	eventually.True(t, "it ends", func() bool { return c.see(t, id).State.Name == types.InstanceStateNameTerminated },
		func() string { return c.console(t, id) })
	if r := c.see(t, id).StateReason; *r.Code != "Client.InstanceInitiatedShutdown" {
		t.Errorf("reason %+v", r)
	}
	nothingLeft(t, dir)
}

func TestClose_LeavesNothing(t *testing.T) {
	c, dir := machines(t, awstest.Options{})
	page := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("up\n"))
	}))
	_ = page.Listener.Close()
	var err error
	if page.Listener, err = net.Listen("tcp", c.Host+":0"); err != nil {
		t.Fatal(err)
	}
	page.Start()
	defer page.Close()
	in := one("m7i.large")
	in.UserData, in.MinCount, in.MaxCount = script("trap '' TERM\ncurl -sS "+page.URL+
		"\nwhile :; do sleep 1; done\n"), aws.Int32(2), aws.Int32(2)
	list := c.run(t, in)
	for _, i := range list {
		eventually.True(t, "it is up", func() bool { return strings.Contains(c.console(t, *i.InstanceId), "up") })
	}
	c.Close()
	nothingLeft(t, dir)
	if out, err := exec.Command("ip", "addr", "show", "dev", "lo").Output(); err != nil || strings.Contains(string(out),
		c.Host) {
		t.Errorf("%s is left: %v", c.Host, err)
	}
}
