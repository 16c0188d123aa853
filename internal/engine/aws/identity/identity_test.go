//go:build !local

package identity

import (
	"bytes"
	"encoding/pem"
	"regexp"
	"strings"
	"testing"

	"scrimp/internal/engine/aws/setting"
)

// Each built-in certificate belongs to one region, and its key is that of the region's machines.
func TestSigners_HaveACertificatePerRegion(t *testing.T) {
	var regions []string
	for line := range strings.Lines(string(certificates)) {
		if name := strings.TrimSpace(strings.TrimPrefix(line, "#")); line[0] == '#' && regexp.MustCompile(`^[a-z]{2,3}(-[a-z]+)+-[0-9]+$`).MatchString(name) {
			regions = append(regions, name)
		}
	}
	blocks, keys := 0, map[string]string{}
	for rest := certificates; ; blocks++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if _, err := publicKey(block.Bytes); block.Type != "CERTIFICATE" || err != nil {
			t.Errorf("block %d: %s: %v", blocks, block.Type, err)
		}
	}
	if begins := bytes.Count(certificates, []byte("-----BEGIN")); blocks != len(regions) || begins != blocks ||
		blocks < 30 {
		t.Errorf("%d certificates of %d for %d regions", blocks, begins, len(regions))
	}
	for _, name := range regions {
		key, err := SignerOf(&setting.With{Region: name})
		if err != nil || key.Size() < 128 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		keys[name] = key.N.String()
	}
	for _, name := range []string{"us-east-1", "us-west-2", "eu-west-1", "eu-central-1", "ap-northeast-1"} {
		if keys[name] == "" {
			t.Errorf("%s has no key", name)
		}
	}
	if _, err := SignerOf(&setting.With{Region: "xx-nowhere-1"}); err == nil || !strings.Contains(err.Error(), "xx-nowhere-1") {
		t.Errorf("a region that has none: %v", err)
	}
}
