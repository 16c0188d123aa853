package spec

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// storeSchemes lists the schemes of addresses of stores and of inputs that scrimp brings to machines.
var storeSchemes = []string{"file", "s3", "gs", "azblob"}

// inputs checks the data.
func (c *checker) inputs() {
	names := map[string]bool{}
	for i, d := range c.j.Data {
		at, name := fmt.Sprintf("data[%d].path", i), fmt.Sprintf("data[%d].name", i)
		c.wrong(d.Path == "", at, "is missing", "give a path or a URL")
		if d.Name == "" {
			c.wrong(d.Stream, fmt.Sprintf("data[%d].stream", i), "stands without name",
				"give the input a name: the program gets the address of a stream in SCRIMP_DATA_NAME")
			continue
		}
		c.wrong(!inputForm.MatchString(d.Name), name, fmt.Sprintf("is %q", d.Name),
			"begin it with a lower-case letter, and use these, digits and underscores only, 32 in all")
		c.wrong(names[d.Name], name, "is that of an earlier input", "give each its own")
		names[d.Name] = true
		c.address(at, d.Path)
	}
}

// address checks the address of an input that scrimp brings.
func (c *checker) address(field, text string) {
	scheme, rest, _ := strings.Cut(text, "://")
	rest, query, asks := strings.Cut(rest, "?")
	host, _, _ := strings.Cut(rest, "/")
	switch {
	case text == "":
	case (strings.ContainsAny(text, " \t\n#") || !escaped(rest)) && slices.Contains(storeSchemes, scheme):
		c.wrong(true, field, fmt.Sprintf("is %q, which no URL is", text),
			"write %20 for a space, %23 for # and %25 for a percent sign of its name")
	case !urlForm.MatchString(text) || !slices.Contains(storeSchemes, scheme):
		c.wrong(true, field, fmt.Sprintf("is %q, which scrimp does not bring", text), "begin it with file://, s3://, gs:// "+
			"or azblob://, or leave out name: the program then reads it itself")
	case strings.Contains(host, "@"):
		c.wrong(true, field, "names a user", "leave the user out: the machine has the credentials")
	case strings.HasPrefix(query, "prefix=") || strings.Contains(query, "&prefix="):
		c.wrong(true, field, "has a prefix as a parameter", "write it as a path, "+scheme+"://"+host+"/PREFIX")
	case scheme == "file" && asks && host == "":
		c.wrong(true, field, "has parameters, which a folder does not take",
			"leave them out, or write %3F for a ? of its name")
	case scheme == "file":
		c.wrong(host != "" || !path.IsAbs(rest), field, "is no absolute path",
			"write file:///FOLDER with three slashes")
	default:
		c.wrong(host == "", field, "names no bucket", "write "+scheme+"://BUCKET/PREFIX")
		c.parameters(field, scheme, query)
	}
}

// bucketParameters lists the documented parameters of the address of a bucket, and bucketOptions those that the
// client of S3 takes besides.
var (
	bucketParameters = map[string][]string{"s3": {"region", "profile", "endpoint"}, "gs": {"endpoint"},
		"azblob": {"account", "endpoint"}}
	bucketOptions = []string{"anonymous", "awssdk", "dualstack", "fips", "hostname_immutable", "rate_limiter_capacity",
		"request_checksum_calculation", "response_checksum_validation"}
)

// parameters refuses parameters that the address of a bucket does not take: each machine would fail on them.
func (c *checker) parameters(field, scheme, query string) {
	for one := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(one, "=")
		known := slices.Contains(bucketParameters[scheme], name) || scheme == "s3" && slices.Contains(bucketOptions, name)
		if name != "" && !known {
			c.wrong(true, field, fmt.Sprintf("has the parameter %.40q, which %s:// does not take", name, scheme),
				"it takes "+strings.Join(bucketParameters[scheme], ", "))
			return
		}
	}
}

// escaped reports whether each percent sign of a URL's path begins an escape such as %20.
func escaped(path string) bool {
	for i := range len(path) {
		if path[i] == '%' && (i+2 >= len(path) || !isHex(path[i+1]) || !isHex(path[i+2])) {
			return false
		}
	}
	return true
}

func isHex(b byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", b) >= 0 }

// DataVariable returns the environment variable with the path of an input that scrimp brings.
func DataVariable(name string) string { return "SCRIMP_DATA_" + strings.ToUpper(name) }
