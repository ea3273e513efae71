// Package secret finds secrets in connection strings, URLs and options, and removes them from texts.
package secret

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Mark replaces a secret.
const Mark = "***"

// options are the connection string options with secret values (URI Options; Authentication,
// "authMechanismProperties"), in lower case.
var options = []string{"authmechanismproperties", "proxypassword", "sslclientcertificatekeypassword", "tlscertificatekeyfilepassword"}

// IsOption reports whether the value of a connection string option is secret.
func IsOption(name string) bool { return slices.Contains(options, strings.ToLower(name)) }

// These match what is secret by its position: credentials in a URL, up to the last @ before the path, and values
// of secret options.
var (
	userInfo    = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/?\s"'<>]*@`)
	optionValue = regexp.MustCompile(`(?i)\b(` + strings.Join(options, "|") + `)=[^&;\s"'<>]*`)
)

// Redact removes what is secret by its position, whether or not a Keeper knows it.
func Redact(text string) string {
	return optionValue.ReplaceAllString(userInfo.ReplaceAllString(text, "${1}"+Mark+"@"), "$1="+Mark)
}

// Find returns the secrets in a URL, a connection string, an option NAME=VALUE, or an argument that contains one.
func Find(text string) (found []string) {
	for _, after, more := strings.Cut(text, "://"); more; _, after, more = strings.Cut(after, "://") {
		found = append(found, ofURL(after)...)
	}
	name, value, _ := strings.Cut(strings.TrimPrefix(text, "--uri-option="), "=")
	return append(found, ofOption(name, value)...)
}

// ofURL returns the secrets in a URL without its scheme.
func ofURL(rest string) (found []string) {
	hosts, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndex(hosts, "@"); at >= 0 {
		if _, password, ok := strings.Cut(hosts[:at], ":"); ok {
			found = append(found, password)
		}
	}
	for _, option := range strings.FieldsFunc(query, func(c rune) bool { return c == '&' || c == ';' }) {
		name, value, _ := strings.Cut(option, "=")
		found = append(found, ofOption(name, value)...)
	}
	return found
}

// ofOption returns the secrets of an option. authMechanismProperties contain names that are not secret.
func ofOption(name, value string) (found []string) {
	if !IsOption(name) || value == "" || value == Mark {
		return nil
	}
	found = []string{value}
	if plain, err := url.QueryUnescape(value); err == nil {
		for _, property := range strings.Split(plain, ",") {
			if key, v, ok := strings.Cut(property, ":"); ok && strings.EqualFold(key, "AWS_SESSION_TOKEN") {
				found = append(found, v)
			}
		}
	}
	return found
}
