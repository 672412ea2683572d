package idemclient

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// origin is where a request goes: what a key may be sent to.
type origin struct{ scheme, host, port string }

// parseHost reads one of New's hosts: the origins that it names.
func parseHost(entry string) ([]origin, error) {
	scheme, authority, explicit := strings.Cut(entry, "://")
	if !explicit {
		scheme, authority = "https", entry
	}
	scheme = strings.ToLower(scheme)
	if scheme != "https" && scheme != "http" {
		return nil, fmt.Errorf("its scheme is %q; it must be https or http", scheme)
	}
	u, err := url.Parse(scheme + "://" + authority)
	if err != nil {
		return nil, fmt.Errorf("it is not host or host:port")
	}
	if u.Host != authority || strings.HasSuffix(authority, ":") {
		return nil, fmt.Errorf("it must be host or host:port and nothing else")
	}
	name := u.Hostname()
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`*%"\`, r) }) || name == "" {
		return nil, fmt.Errorf("its host must be one exact name in ASCII (an international one in its xn-- form), without wildcard or zone")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("its port must be 1 to 65535")
		}
	}
	origins := []origin{originOf(u)}
	if !explicit && isLoopback(name) {
		u.Scheme = "http"
		origins = append(origins, originOf(u))
	}
	return origins, nil
}

// originOf is where a URL leads, in the one form in which origins are compared.
func originOf(u *url.URL) origin {
	o := origin{u.Scheme, strings.ToLower(u.Hostname()), u.Port()}
	if o.port == "" {
		o.port = map[string]string{"https": "443", "http": "80"}[o.scheme]
	}
	if n, err := strconv.ParseUint(o.port, 10, 16); err == nil {
		o.port = strconv.FormatUint(n, 10) // 0443 dials 443
	}
	if addr, err := netip.ParseAddr(o.host); err == nil {
		o.host = addr.String()
	}
	return o
}

// isLoopback: what is sent there by plain HTTP leaves no machine (RFC 6761, 6.3).
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
