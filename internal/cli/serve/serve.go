// Package serve has the flags of scrimp serve that belong together: of the mail server and of the identity provider.
package serve

import (
	"github.com/spf13/pflag"

	"scrimp/internal/server/mailer"
	"scrimp/internal/server/oidc"
)

// SignInFlags adds the flags of the identity provider.
func SignInFlags(f *pflag.FlagSet, s *oidc.Settings) {
	f.StringVar(&s.Issuer, "oidc-issuer", "", "`URL` of an OpenID Connect provider that signs people in to the "+
		"dashboard (default: none)")
	f.StringVar(&s.Client, "oidc-client", "", "`ID` of this server at the provider (default: none)")
	f.StringVar(&s.SecretFile, "oidc-secret-file", "", "`file` with the secret of that ID; the server reads it at each "+
		"sign-in (default: none)")
	f.StringVar(&s.Claim, "oidc-claim", "email", "`claim` of the ID token that has the email address of a user")
	f.StringArrayVar(&s.Groups, "oidc-group", nil, "`mapping` GROUP=TEAM:ROLE, which gives the members of a group a "+
		"user with that role, and keeps the roles of such users equal to their "+
		"groups; may be repeated (default: only users that an "+
		"admin made)")
	f.StringVar(&s.GroupClaim, "oidc-groups-claim", "groups", "`claim` of the ID token that has the groups")
}

// MailFlags adds the flags of the mail server.
func MailFlags(f *pflag.FlagSet, s *mailer.Settings) {
	f.StringVar(&s.URL, "smtp", "", "`address` of the mail server for notify.email: smtp://USER@HOST:587 (STARTTLS) "+
		"or smtps://USER@HOST:465 (TLS) (default: no e-mail)")
	f.StringVar(&s.PasswordFile, "smtp-password", "", "`file` with the password of its user; never sent without TLS "+
		"(default: no login)")
	f.StringVar(&s.From, "smtp-from", "", "`address` of the sender, such as scrimp@example.org (default: none)")
}
