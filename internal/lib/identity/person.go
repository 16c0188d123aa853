package identity

import (
	"bytes"
	"cmp"
	"encoding/base32"
	"fmt"
	"regexp"
	"strings"
)

// Person holds the name and address by which people know a user. The log does not hold them, so that they can be
// erased.
type Person struct {
	Name  string `json:"name"`
	Email string `json:"email,omitempty"` // as User.Email
}

// Prefixes of the names that only this package makes.
const (
	idMark     = "person-"
	erasedMark = "erased-"
	idLength   = 16 // digits of an ID
)

// idDigits are the digits of an ID after its mark: they need no quoting, as in names.
var idDigits = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

var (
	idForm     = regexp.MustCompile(`^` + idMark + `[a-z2-7]{16}$`)
	idInText   = regexp.MustCompile(idMark + `[a-z2-7]{16}`)
	erasedForm = regexp.MustCompile(`^` + erasedMark + `[0-9]+$`)
)

// NewID returns a new user ID. It is random, so it is unique and reveals nothing about the person.
func NewID(chance [10]byte) string { return idMark + idDigits.EncodeToString(chance[:]) }

// IsID reports whether a text has the form of an ID. The ID of a user whom an older release made is the name.
func IsID(text string) bool { return idForm.MatchString(text) }

// ErasedName returns the name of the n-th erased user, from 1.
func ErasedName(n int) string { return fmt.Sprint(erasedMark, n) }

// Person returns the Person of a user ID. An erased user keeps the name erased-1, erased-2 and so on for ever.
func (b *Book) Person(id string) Person {
	u := b.users[id]
	if u.Erased > 0 {
		return Person{Name: ErasedName(u.Erased)}
	}
	if p, known := b.persons[id]; known {
		return p
	}
	return Person{Name: id, Email: u.Email}
}

// Persons returns everything that can be erased, by ID.
func (b *Book) Persons() map[string]Person { return b.persons }

// SetPerson changes a user's Person; nil removes it.
func (b *Book) SetPerson(id string, p *Person) {
	if p == nil {
		delete(b.persons, id)
		return
	}
	b.persons[id] = *p
}

// ID returns the ID of the user whom people know by a name. The name of an erased user is free again.
func (b *Book) ID(name string) (id string, known bool) {
	for id := range b.users {
		if b.Person(id).Name == name {
			return id, true
		}
	}
	return "", false
}

// Erasures returns how many users are erased.
func (b *Book) Erasures() (n int) {
	for _, u := range b.users {
		n = max(n, u.Erased)
	}
	return n
}

// checkPerson returns what is wrong with a Person.
func (b *Book) checkPerson(id string, p Person) error {
	if err := checkName("user", "name", p.Name); err != nil {
		return err
	}
	switch is, taken := b.ID(p.Name); {
	case p.Name == "owner":
		return Wrong{"name", `user "owner" is the owner of the data folder`, "take another name"}
	case strings.HasPrefix(p.Name, idMark), erasedForm.MatchString(p.Name):
		return Wrong{"name", fmt.Sprintf("scrimp gives names such as %q itself", p.Name), "take another name"}
	case taken && is != id:
		return Wrong{"name", fmt.Sprintf("user %q exists already", p.Name), "take another name"}
	}
	return b.checkEmail(User{Name: id, Email: p.Email})
}

// Names replaces IDs in texts by the names that people know. A Names is immutable.
type Names struct {
	byID   map[string]string
	gone   map[string]string // as byID, of erased users whom an older release made
	erased *strings.Replacer // of those; nil: none
}

// Names returns the present names.
func (b *Book) Names() *Names {
	n := &Names{byID: map[string]string{}, gone: map[string]string{}}
	var pairs []string
	for id, u := range b.users {
		name := b.Person(id).Name
		switch {
		case IsID(id):
			n.byID[id] = name
		case u.Erased > 0:
			n.gone[id] = name
			// a name from an older release may be any word, so replace it only in fields that name a user
			for _, field := range []string{"user", "who", "by"} {
				pairs = append(pairs, `"`+field+`":"`+id+`"`, `"`+field+`":"`+name+`"`)
			}
			for _, end := range []string{`"`, "/", " ", ",", ";", ":"} {
				pairs = append(pairs, "user:"+id+end, "user:"+name+end)
			}
		}
	}
	if len(pairs) > 0 {
		n.erased = strings.NewReplacer(pairs...)
	}
	return n
}

// Of returns the name of a user by ID; an ID without a Person is its own name.
func (n *Names) Of(id string) string {
	if name, known := n.byID[id]; known {
		return name
	}
	return n.Known(id)
}

// Known returns the ID itself, or erased-N if an older release made the user and the user has been erased.
func (n *Names) Known(id string) string { return cmp.Or(n.gone[id], id) }

// nameInText finds what may be a name.
var nameInText = regexp.MustCompile(`[a-z0-9][a-z0-9._@-]*`)

// Said applies Known to each word of a sentence.
func (n *Names) Said(text string) string {
	if len(n.gone) == 0 {
		return text
	}
	return nameInText.ReplaceAllStringFunc(text, n.Known)
}

// In returns a text with names in place of IDs.
func (n *Names) In(text []byte) []byte {
	if len(n.byID) > 0 && bytes.Contains(text, []byte(idMark)) {
		text = idInText.ReplaceAllFunc(text, func(id []byte) []byte {
			if name, known := n.byID[string(id)]; known {
				return []byte(name)
			}
			return id
		})
	}
	if n.erased != nil {
		text = []byte(n.erased.Replace(string(text)))
	}
	return text
}

// Whole returns the length of a text without an unfinished ID at its end.
func Whole(text []byte) int {
	for i := max(0, len(text)-len(idMark)-idLength+1); i < len(text); i++ {
		if unfinished(text[i:]) {
			return i
		}
	}
	return len(text)
}

// unfinished reports whether a text is the beginning of an ID.
func unfinished(text []byte) bool {
	digits, marked := bytes.CutPrefix(text, []byte(idMark))
	if !marked {
		return strings.HasPrefix(idMark, string(text))
	}
	return len(digits) < idLength && !bytes.ContainsFunc(digits, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '2' || c > '7')
	})
}
