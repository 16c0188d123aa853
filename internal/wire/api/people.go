package api

import "scrimp/client"

// Users, rights and the audit trail:
//
//	GET    /v1/me                        -> Me
//	GET    /v1/users                     -> []User
//	PUT    /v1/users/{name}   SetUser    -> User
//	POST   /v1/users/{name}/erase  EraseUser -> Erasure
//	GET    /v1/teams                     -> []Team
//	PUT    /v1/teams/{name}   SetTeam    -> Team
//	GET    /v1/tokens                    -> []Token
//	POST   /v1/tokens         NewToken   -> MadeToken
//	DELETE /v1/tokens/{id}               -> 204
//	GET    /v1/audit?after=N             -> Audit
type (
	Me        = client.Me
	SetUser   = client.SetUser
	EraseUser = client.EraseUser
	Erasure   = client.Erasure
	SetTeam   = client.SetTeam
	Token     = client.Token
	NewToken  = client.NewToken
	MadeToken = client.MadeToken
	Audit     = client.Audit
	Act       = client.Act
	User      = client.User
	Team      = client.Team
)
