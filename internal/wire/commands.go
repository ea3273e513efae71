package wire

// IsHello reports whether a command is a handshake: one with speculativeAuthenticate is sensitive.
func IsHello(command string) bool {
	return command == "hello" || command == "isMaster" || command == "ismaster"
}

// Sensitive reports whether every command of a name contains credentials (Command Logging and Monitoring, "Security").
func Sensitive(command string) bool {
	switch command {
	case "authenticate", "saslStart", "saslContinue", "getnonce", "createUser", "updateUser",
		"copydbgetnonce", "copydbsaslstart", "copydb":
		return true
	}
	return false
}
