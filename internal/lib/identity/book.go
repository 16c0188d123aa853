package identity

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Callers test for these with errors.Is. Whoever sent the token gets the same message for both, so nobody learns which
// tokens existed.
var (
	ErrUnknown = errors.New("the token is not known")
	ErrExpired = errors.New("the token has expired, or was revoked")
)

// User is a person, or a program that acts for one.
type User struct {
	Name   string    `json:"name"` // its ID; Person has the name that people know
	Grants []Grant   `json:"grants"`
	Off    bool      `json:"off,omitempty"` // may do nothing; past actions stay on record
	Made   time.Time `json:"made"`          // wall time
	// Email is the address with which an identity provider names the user; "": the user signs in by token only. This
	// release reads it in logs of older ones, and writes it into Person alone.
	Email string `json:"email,omitempty"`
	// Grouped marks grants that follow the groups of the identity provider; an admin who sets grants ends that.
	Grouped bool `json:"grouped,omitempty"`
	// Erased counts the erased users up to this one; 0: the user is not erased.
	Erased int `json:"erased,omitempty"`
}

// Team owns jobs. If it names projects, its jobs must belong to one of them.
type Team struct {
	Name     string   `json:"name"`
	Projects []string `json:"projects,omitempty"`
	Disk     int64    `json:"disk,omitempty"` // bytes that its jobs may use on the server's disk; 0: no limit
}

// Token lets its holder act as its user. The token itself is not stored.
//
// The hash is one SHA-256 of 32 random bytes. Slow hashes protect passwords, which can be guessed. 2^256 values cannot
// be guessed, however fast each try is, and requests are not slowed by a tenth of a second.
type Token struct {
	ID      string    `json:"id"` // first 12 digits of the hash
	User    string    `json:"user"`
	Hash    string    `json:"hash"` // hexadecimal
	Most    Role      `json:"most"` // the user's role is limited to it; none: no limit
	Note    string    `json:"note,omitempty"`
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// Live reports whether the token is still valid.
func (t Token) Live(now time.Time) bool { return t.Revoked.IsZero() && now.Before(t.Expires) }

// LongestLife is the longest life of a token, so that a forgotten one expires.
const LongestLife = 366 * 24 * time.Hour

// MostTokens is how many valid tokens a user may have at the same time.
const MostTokens = 100

// live returns the number of a user's valid tokens.
func (b *Book) live(user string, now time.Time) (n int) {
	for _, t := range b.tokens {
		if t.User == user && t.Live(now) {
			n++
		}
	}
	return n
}

// tokenMark lets scanners that search for secrets recognise a token.
const tokenMark = "scrimp_"

// Mint makes a token of 32 random bytes. Only the user may see the text.
func Mint(chance [32]byte, user string, now time.Time, life time.Duration) (text string, t Token) {
	text = tokenMark + base64.RawURLEncoding.EncodeToString(chance[:])
	h := hash(text)
	return text, Token{ID: h[:12], User: user, Hash: h, Made: now, Expires: now.Add(life)}
}

// shortest is the smallest length of a token: 32 random bytes. Whoever has the hashes could guess shorter ones.
const shortest = len(tokenMark) + 43

// Given makes a token of a text that was generated elsewhere from at least 32 random bytes.
func Given(text, user string, now time.Time, life time.Duration) (Token, error) {
	if !IsToken(text) {
		return Token{}, fmt.Errorf("it is not a token: write %s and 43 letters and digits at least, such as "+
			`"%[1]s$(openssl rand -hex 32)"`, tokenMark)
	}
	h := hash(text)
	return Token{ID: h[:12], User: user, Hash: h, Made: now, Expires: now.Add(life)}, nil
}

// IsToken reports whether a text is a token in form.
func IsToken(text string) bool {
	return strings.HasPrefix(text, tokenMark) && len(text) >= shortest &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

func hash(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// Change is one line of a Book's history. Exactly one of User, Team, Token and Revoke is set.
type Change struct {
	User   *User  `json:"user,omitempty"` // the user's new state
	Team   *Team  `json:"team,omitempty"`
	Token  *Token `json:"token,omitempty"` // newly issued
	Revoke string `json:"revoke,omitempty"`
	// At is the wall time of Revoke. With User it ends all tokens that the user has then.
	At *time.Time `json:"at,omitempty"`
	// Person is how people know User from now on; nil: as before. It is not part of the log.
	Person *Person `json:"-"`
}

// Book is the state after all changes so far.
type Book struct {
	users  map[string]User
	teams  map[string]Team
	tokens map[string]Token  // by hash
	ids    map[string]string // hash by ID
	// persons is how people know users, by ID, without those whom an older release made.
	persons map[string]Person
}

// NewBook returns an empty book.
func NewBook() *Book {
	return &Book{map[string]User{}, map[string]Team{}, map[string]Token{}, map[string]string{}, map[string]Person{}}
}

// Check returns what is wrong with a change to this book, and how to fix it.
func (b *Book) Check(c Change) error {
	switch {
	case c.User != nil:
		if err := checkName("user", "name", c.User.Name); err != nil {
			return err
		}
		if c.User.Erased == 0 && b.users[c.User.Name].Erased > 0 {
			return Wrong{"name", fmt.Sprintf("user %s is erased", c.User.Name), "make another user"}
		}
		if c.Person != nil {
			if err := b.checkPerson(c.User.Name, *c.Person); err != nil {
				return err
			}
		}
		for _, g := range c.User.Grants {
			if _, known := b.teams[g.Team]; !known && g.Team != Everywhere {
				return Wrong{"grants", fmt.Sprintf("team %q is not known", g.Team), "make it with scrimp teams set " + g.Team}
			}
		}
	case c.Team != nil:
		for _, p := range c.Team.Projects {
			if err := checkName("project", "projects", p); err != nil {
				return err
			}
		}
		if c.Team.Disk < 0 {
			return Wrong{"disk_bytes", fmt.Sprintf("a team cannot have %d bytes", c.Team.Disk), "write 0 for no limit"}
		}
		return checkName("team", "name", c.Team.Name)
	case c.Token != nil:
		return b.checkToken(*c.Token)
	case c.Revoke != "":
		if _, known := b.ids[c.Revoke]; !known {
			return Wrong{"id", fmt.Sprintf("token %q is not known", c.Revoke), "scrimp tokens lists them"}
		}
	default:
		return errors.New("the change is empty")
	}
	return nil
}

func (b *Book) checkToken(t Token) error {
	u, known := b.users[t.User]
	life := t.Expires.Sub(t.Made)
	switch {
	case !known:
		return Wrong{"user", fmt.Sprintf("user %q is not known", t.User), "scrimp users lists them"}
	case u.Erased > 0:
		return Wrong{"user", fmt.Sprintf("user %s is erased", ErasedName(u.Erased)), "make another user"}
	case u.Off:
		return Wrong{"user", fmt.Sprintf("user %s is switched off", u.Name), "scrimp users set " + u.Name + " --on"}
	case b.live(t.User, t.Made) >= MostTokens:
		return Wrong{"user", fmt.Sprintf("user %s has %d valid tokens", u.Name, MostTokens),
			"scrimp tokens lists them, scrimp tokens revoke revokes unused ones"}
	case life <= 0 || life > LongestLife:
		return Wrong{"life_ns", fmt.Sprintf("a token cannot be valid for %v", life),
			fmt.Sprintf("write more than 0 and at most %d hours, as in --for 90d", LongestLife/time.Hour)}
	}
	return nil
}

// Apply applies a change without checking it, because the log may hold changes that today's Check refuses.
func (b *Book) Apply(c Change) {
	switch {
	case c.User != nil:
		u := *c.User
		u.Grants = slices.Clone(u.Grants)
		b.users[u.Name] = u
		if c.Person != nil {
			b.SetPerson(u.Name, c.Person)
		}
		if c.At != nil {
			b.revokeAll(u.Name, *c.At)
		}
	case c.Team != nil:
		t := *c.Team
		t.Projects = slices.Clone(t.Projects)
		b.teams[t.Name] = t
	case c.Token != nil:
		b.tokens[c.Token.Hash], b.ids[c.Token.ID] = *c.Token, c.Token.Hash
	case c.Revoke != "" && c.At != nil:
		if t, known := b.tokens[b.ids[c.Revoke]]; known && t.Revoked.IsZero() {
			t.Revoked = *c.At
			b.tokens[t.Hash] = t
		}
	}
}

// revokeAll ends all tokens of a user that are valid at the time.
func (b *Book) revokeAll(user string, at time.Time) {
	for h, t := range b.tokens {
		if t.User == user && t.Live(at) {
			t.Revoked = at
			b.tokens[h] = t
		}
	}
}

// Good reports whether a token opens the server: it is valid, and its user is not switched off.
func (b *Book) Good(t Token, now time.Time) bool {
	u, known := b.users[t.User]
	return known && !u.Off && t.Live(now)
}

// Who returns the caller that a token belongs to. Tokens are looked up by their hash, so the time it takes reveals
// nothing about any token.
func (b *Book) Who(token string, now time.Time) (Caller, error) {
	t, known := b.tokens[hash(token)]
	if !known || !strings.HasPrefix(token, tokenMark) {
		return Caller{}, ErrUnknown
	}
	u := b.users[t.User]
	if !b.Good(t, now) {
		return Caller{}, fmt.Errorf("%w (token %s)", ErrExpired, t.ID)
	}
	return Caller{User: u.Name, Token: t.ID, Grants: slices.Clone(u.Grants), Most: t.Most}, nil
}

// Users returns the users in the order of their names.
func (b *Book) Users() []User {
	return slices.SortedFunc(maps.Values(b.users), func(x, y User) int { return strings.Compare(x.Name, y.Name) })
}

// Teams returns the teams in the order of their names.
func (b *Book) Teams() []Team {
	return slices.SortedFunc(maps.Values(b.teams), func(x, y Team) int { return strings.Compare(x.Name, y.Name) })
}

// Tokens returns the tokens in the order in which they were made.
func (b *Book) Tokens() []Token {
	return slices.SortedFunc(maps.Values(b.tokens), func(x, y Token) int {
		if c := x.Made.Compare(y.Made); c != 0 {
			return c
		}
		return strings.Compare(x.ID, y.ID)
	})
}

// User returns a user by name.
func (b *Book) User(name string) (User, bool) { u, ok := b.users[name]; return u, ok }

// Token returns a token by its ID.
func (b *Book) Token(id string) (Token, bool) { t, ok := b.tokens[b.ids[id]]; return t, ok }

// Place returns the team and project of the caller's new job: those requested, or the only possible ones. field is the
// field in error.
func (b *Book) Place(c Caller, team, project string) (inTeam, inProject, field string, err error) {
	var can []string
	for _, t := range b.Teams() {
		if c.Role(t.Name) >= Submitter {
			can = append(can, t.Name)
		}
	}
	if team == "" {
		switch {
		case len(can) == 1:
			team = can[0]
		case c.Role(Everywhere) >= Submitter:
		case len(can) > 1:
			return "", "", "team", fmt.Errorf("the job names no team: write one of %s", strings.Join(can, ", "))
		}
	}
	if err := b.mayIn(c, team, can); err != nil {
		return "", "", "team", err
	}
	projects := b.teams[team].Projects
	switch {
	case project == "" && len(projects) == 1:
		project = projects[0]
	case project == "" && len(projects) > 1:
		return "", "", "project", fmt.Errorf("the job names no project of team %s: write one of %s", team,
			strings.Join(projects, ", "))
	case len(projects) > 0 && !slices.Contains(projects, project):
		return "", "", "project", fmt.Errorf("team %[2]s has no project %[1]q: write one of %[3]s", project, team,
			strings.Join(projects, ", "))
	}
	return team, project, "", nil
}

// mayIn says why a caller may not submit for a team; "" means they may. can lists the teams for which they may.
func (b *Book) mayIn(c Caller, team string, can []string) error {
	in := team
	if team == "" {
		in = Everywhere
	}
	_, known := b.teams[team]
	switch {
	case c.Role(in) < Submitter && (team == "" || len(can) == 0):
		return fmt.Errorf("%s may submit for no team: an admin grants it with scrimp users set %s", c.User, c.User)
	case c.Role(in) < Submitter:
		return fmt.Errorf("%s may not submit for team %q: write one of %s", c.User, team, strings.Join(can, ", "))
	case team != "" && !known && len(b.teams) > 0:
		return fmt.Errorf("team %q is not known: an admin makes it with scrimp teams set %s", team, team)
	}
	return nil
}

// Act is a line of the audit trail: who did something, or tried to.
type Act struct {
	At      time.Time `json:"at"` // wall time
	Who     string    `json:"who"`
	Token   string    `json:"token,omitempty"` // its ID
	From    string    `json:"from,omitempty"`  // address, or socket
	Route   string    `json:"route"`
	Object  string    `json:"object,omitempty"`
	Outcome string    `json:"outcome"`          // done, refused, failed
	Detail  string    `json:"detail,omitempty"` // never a secret
}

// UserOf returns the user with an email address, whatever the case of its ASCII letters.
func (b *Book) UserOf(email string) (User, bool) {
	if email == "" {
		return User{}, false
	}
	for id, u := range b.users {
		if has := b.Person(id).Email; has != "" && PlainEmail(has) == PlainEmail(email) {
			return u, true
		}
	}
	return User{}, false
}

// checkEmail returns what is wrong with the address of a user: two users never share one.
func (b *Book) checkEmail(u User) error {
	if u.Email == "" {
		return nil
	}
	if fix := WrongEmail(u.Email); fix != "" {
		return Wrong{"email", fmt.Sprintf("%q is not an email address", u.Email), fix}
	}
	if other, taken := b.UserOf(u.Email); taken && other.Name != u.Name {
		return Wrong{"email", fmt.Sprintf("user %s has the address %s", other.Name, u.Email),
			"remove it there first: scrimp users set " + other.Name + ` --email ""`}
	}
	return nil
}

// Team returns a team by name.
func (b *Book) Team(name string) (Team, bool) { t, ok := b.teams[name]; return t, ok }
