package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"scrimp/internal/lib/durable"
)

//go:embed join.service
var unitText string

var unitTemplate = template.Must(template.New("unit").Parse(unitText))

// unit holds the values of a systemd unit.
type unit struct {
	URL, User, Command string
	Root, Usual        bool // it runs as root; its folder is root's default
}

// unitFolder is the folder of the machine's own units.
const unitFolder = "/etc/systemd/system"

// joinUnit prints or installs the unit that keeps agent join running.
func (a *app) joinUnit(address string, f *joinFlags) error {
	of, err := user.Current()
	if f.user != "" {
		of, err = user.Lookup(f.user)
	}
	if err != nil {
		return fmt.Errorf("find the user whom the unit runs as: %w", err)
	}
	dir, err := joinFolder(f.dir, of)
	if err != nil {
		return err
	}
	file, err := absolute(f.tokenFile)
	if err != nil {
		return err
	}
	if file == "" {
		file = filepath.Join(dir, "join.token")
	}
	text, err := f.unitOf(address, of, dir, file)
	if err != nil {
		return err
	}
	running := hasSystemd()
	if !f.install {
		a.Content(text)
		if running == nil {
			a.Notef("%s", nextSteps(file, f.tokenFile == "", "scrimp-join"))
			return nil
		}
		a.Notef("%v\n", running)
		return nil
	}
	if running != nil {
		return running
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%s belongs to root: run this with sudo and --user %s", unitFolder, of.Username)
	}
	token, machine, err := a.joinToken(f)
	if err != nil {
		return err
	}
	if err := keepJoinToken(dir, file, token, of); err != nil {
		return err
	}
	name := "scrimp-join-" + machine
	path := filepath.Join(unitFolder, name+".service")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	if a.JSON {
		return a.Print(map[string]string{"unit": path, "token_file": file})
	}
	a.Printf("The unit is in %s, the token in %s. Start it with:\n%s", path, file, starts(name))
	return nil
}

// starts returns the commands that start a unit.
func starts(name string) string {
	return "  sudo systemctl daemon-reload\n  sudo systemctl enable --now " + name + "\n"
}

// nextSteps returns instructions for a printed unit.
func nextSteps(file string, asks bool, name string) string {
	text := fmt.Sprintf("Keep it as %s, then start it with:\n%s", filepath.Join(unitFolder, name+".service"), starts(name))
	if asks {
		text = fmt.Sprintf("Put the token into %s (mode 0600). ", file) + text
	}
	return text
}

// hasSystemd returns an error if systemd cannot start a unit here.
func hasSystemd() error {
	_, err := exec.LookPath("systemctl")
	if _, running := os.Stat("/run/systemd/system"); err != nil || running != nil {
		return errors.New("systemd does not run here, so no unit is started: let whatever starts programs here keep " +
			"scrimp agent join URL --token-file FILE running")
	}
	return nil
}

// unitOf returns the text of the unit.
func (f *joinFlags) unitOf(address string, of *user.User, dir, tokenFile string) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	words := []string{exe, "agent", "join", address, "--token-file", tokenFile, "--dir", dir}
	for _, v := range [][2]string{{"--ca", f.ca}, {"--address", f.address}} {
		if v[1] != "" {
			words = append(words, v[0], v[1])
		}
	}
	for n, w := range words {
		if strings.ContainsAny(w, "\n\r\x00") {
			return "", fmt.Errorf("%q cannot stand in a unit", w)
		}
		words[n] = unitWord(w)
	}
	var b strings.Builder
	err = unitTemplate.Execute(&b, unit{URL: strings.ReplaceAll(address, "%", "%%"), User: of.Username,
		Command: strings.Join(words, " "), Root: of.Uid == "0", Usual: dir == rootFolder})
	return b.String(), err
}

// unitWord quotes a word of a command for systemd.
func unitWord(w string) string {
	w = strings.NewReplacer("%", "%%", "$", "$$", `\`, `\\`, `"`, `\"`).Replace(w)
	if strings.ContainsAny(w, " \t'\"\\;") || w == "" {
		return `"` + w + `"`
	}
	return w
}

// keepJoinToken writes the token to the file that the unit reads, readable only for the unit's user.
func keepJoinToken(dir, file, token string, of *user.User) error {
	uid, err := strconv.Atoi(of.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(of.Gid)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		// The users of tasks traverse this folder.
		if err := errors.Join(os.MkdirAll(dir, 0o711), os.Chown(dir, uid, gid)); err != nil {
			return err
		}
	}
	return errors.Join(durable.Replace(file, []byte(token+"\n")), os.Chown(file, uid, gid))
}
