package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// spdx is a bill of materials in SPDX 2.3.
type spdx struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      map[string]any `json:"creationInfo"`
	Packages      []spdxPackage  `json:"packages"`
	Relationships []spdxRelation `json:"relationships"`
}

type spdxPackage struct {
	Name       string              `json:"name"`
	ID         string              `json:"SPDXID"`
	Version    string              `json:"versionInfo"`
	Location   string              `json:"downloadLocation"`
	Analyzed   bool                `json:"filesAnalyzed"`
	Concluded  string              `json:"licenseConcluded"`
	Declared   string              `json:"licenseDeclared"`
	Copyright  string              `json:"copyrightText"`
	Comment    string              `json:"comment,omitempty"` // Go's own sum of a module
	Checksums  []map[string]string `json:"checksums,omitempty"`
	References []map[string]string `json:"externalRefs"`
}

type spdxRelation struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

var noID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// bill returns the bill of materials of a binary: the modules recorded in it.
func (r release) bill(binary, platform string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(text))
	name := "scrimp-" + r.Version + "-" + strings.ReplaceAll(platform, "/", "-")
	doc := spdx{Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name,
		Namespace: "https://scrimp.invalid/spdx/" + name + "-" + sum,
		Creation:  map[string]any{"created": r.When.Format(time.RFC3339), "creators": []string{"Tool: scrimp-hack-dist"}}}
	whole := packageOf("scrimp", r.Version)
	whole.Declared = "Apache-2.0"
	whole.Checksums = []map[string]string{{"algorithm": "SHA256", "checksumValue": sum}}
	doc.Packages = []spdxPackage{whole, packageOf("stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		doc.Packages = append(doc.Packages, moduleOf(m))
	}
	doc.Relationships = []spdxRelation{{doc.ID, "DESCRIBES", whole.ID}}
	for _, p := range doc.Packages[1:] {
		doc.Relationships = append(doc.Relationships, spdxRelation{whole.ID, "DEPENDS_ON", p.ID})
	}
	b, err := json.MarshalIndent(doc, "", " ")
	return append(b, '\n'), err
}

func moduleOf(m *debug.Module) spdxPackage {
	if m.Replace != nil {
		m = m.Replace
	}
	p := packageOf(m.Path, m.Version)
	p.Comment = m.Sum
	return p
}

func packageOf(name, version string) spdxPackage {
	const unknown = "NOASSERTION"
	return spdxPackage{Name: name, ID: "SPDXRef-" + noID.ReplaceAllString(name+"-"+version, "-"), Version: version,
		Location: unknown, Concluded: unknown, Declared: unknown, Copyright: unknown,
		References: []map[string]string{{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
			"referenceLocator": "pkg:golang/" + name + "@" + strings.ReplaceAll(version, "+", "%2B")}}}
}
