package pack

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"scrimp/internal/decide/receipt"
	"scrimp/internal/job/ignore"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/quiet"
)

// own finds what scrimp itself has written into a work folder, and what is a secret by its content. No job needs the
// former, and tokens open a server.
type own struct {
	folder string
	user   string // text of .scrimpignore
}

// loginName matches the files in which scrimp login keeps an address and a token.
var loginName = regexp.MustCompile(`^login(-[a-z0-9-]+)?\.json$`)

// Largest files that may be a login, which may hold certificates, and a token, in bytes.
const (
	maxLogin = 64 << 10
	maxToken = 1 << 10
)

// has reports whether a file or folder is no part of the work: outputs that scrimp get copied here, a data folder, a
// receipt's page, a login or a token. A line of .scrimpignore that includes it is obeyed, except for outputs.
func (o own) has(rel string, isFolder bool) bool {
	path := filepath.Join(o.folder, rel)
	if isFolder {
		return fetched(path) || isData(path) && o.stays(rel, true)
	}
	return (o.secret(rel) || isReceipt(path)) && o.stays(rel, false)
}

// secret reports whether a file is a login or a token. Below the folder itself only its name tells: to read each small
// file of a large data set would take long.
func (o own) secret(rel string) bool {
	if base := filepath.Base(rel); base != rel && !isTokenName(base) && !loginName.MatchString(base) {
		return false
	}
	path := filepath.Join(o.folder, rel)
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && (isLogin(path, info) || isToken(path, info))
}

// stays reports whether .scrimpignore does not include the path, as !PATH does.
func (o own) stays(rel string, isFolder bool) bool {
	return ignore.Parse("*\n"+o.user).Match(filepath.ToSlash(rel), isFolder)
}

// isData reports whether a folder is a data folder of scrimp, of a server or of a command that is logged in elsewhere.
func isData(dir string) bool {
	if is(dir, "scrimp.db") && is(dir, "server.lock") {
		return true
	}
	path := filepath.Join(dir, "login.json")
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && isLogin(path, info)
}

// is reports whether a folder has a file with the name.
func is(dir, name string) bool {
	info, err := os.Lstat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

// isLogin reports whether a file is a login: an address and a token.
func isLogin(path string, info fs.FileInfo) bool {
	if info.Size() > maxLogin || !loginName.MatchString(filepath.Base(path)) {
		return false
	}
	text := head(path, maxLogin)
	return strings.Contains(text, `"server"`) && strings.Contains(text, `"token"`)
}

// isToken reports whether a file has the name of a token, or holds nothing but a token of a scrimp server.
func isToken(path string, info fs.FileInfo) bool {
	if info.Size() > maxToken {
		return false
	}
	return isTokenName(filepath.Base(path)) || identity.IsToken(strings.TrimSpace(head(path, maxToken)))
}

// isTokenName reports whether a file with the name counts as a token, whatever it holds.
func isTokenName(name string) bool { return name == "token" || name == "tokens" }

// isReceipt reports whether a file is the page of a receipt.
func isReceipt(path string) bool {
	if filepath.Ext(path) != ".html" {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && head(path, len(receipt.PageBegin)) == receipt.PageBegin
}

// head returns the first bytes of a file, or as much as can be read.
func head(path string, n int) string {
	f, err := quiet.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // only read
	b := make([]byte, n)
	n, _ = f.ReadAt(b, 0) // a shorter file has what it has
	return string(b[:n])
}
