// The npm package oidc-provider as an authorization server for tests: registration, PKCE, resource indicators with JWT
// access tokens, rotation with reuse detection, device flow, client credentials, revocation.
//
// node as.mjs '{"package": "<url of oidc-provider>", "resources": ["http://127.0.0.1:1/mcp"], ...}'
// Prints one line of JSON when ready; GET /lab/counts tells what happened; ends when standard input does.
import crypto from 'node:crypto';
import http from 'node:http';

const settings = JSON.parse(process.argv[2]);
const { default: Provider, errors } = await import(settings.package);
console.warn = console.info = () => {};

const counts = {
  refreshes_ok: 0, refreshes_refused: 0, reuse_detected: 0, grants_revoked: 0, registrations: 0,
  registrations_refused: 0, logins_finished: 0, authorize_requests: 0, device_requests: 0, client_credentials_ok: 0,
  revocations: 0, token_errors: [],
};

const server = http.createServer();
await new Promise((ready) => server.listen(settings.port ?? 0, '127.0.0.1', ready));
const issuer = `http://127.0.0.1:${server.address().port}`;
const signing = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' });
const loopback = ['http://localhost/callback', 'http://127.0.0.1/callback', 'http://[::1]/callback'];

const provider = new Provider(issuer, {
  jwks: { keys: [{ ...signing, use: 'sig', alg: 'ES256', kid: 'test' }] },
  cookies: { keys: [crypto.randomBytes(16).toString('hex')] },
  clients: [
    {
      client_id: 'preset-client', application_type: 'native', token_endpoint_auth_method: 'none',
      redirect_uris: loopback, grant_types: ['authorization_code', 'refresh_token'],
    },
    {
      client_id: 'device-client', application_type: 'native', token_endpoint_auth_method: 'none', redirect_uris: [],
      response_types: [], grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
    },
    {
      client_id: 'machine-client', client_secret: settings.machineSecret, redirect_uris: [], response_types: [],
      grant_types: ['client_credentials'], token_endpoint_auth_method: 'client_secret_basic',
    },
  ],
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  // What a registration may name; without the resource's scopes, one that asks for them is refused.
  scopes: ['openid', 'offline_access', ...(settings.scopesInRegistration ? settings.scopes : [])],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
  expiresWithSession: () => false,
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  ttl: {
    AccessToken: settings.accessSeconds,
    ClientCredentials: settings.accessSeconds,
    AuthorizationCode: 60,
    DeviceCode: settings.deviceSeconds,
    Grant: 24 * 3600,
    Interaction: 3600,
    RefreshToken: settings.refreshSeconds,
    Session: 3600,
  },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: settings.registration },
    revocation: { enabled: true },
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: (ctx, client, oneOf) => oneOf ?? [],
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => {
        if (!settings.resources.includes(resource)) {
          throw new errors.InvalidTarget();
        }
        return {
          scope: settings.scopes.join(' '), audience: resource, accessTokenFormat: 'jwt',
          accessTokenTTL: settings.accessSeconds, jwt: { sign: { alg: 'ES256' } },
        };
      },
    },
  },
});

provider.on('registration_create.success', () => { counts.registrations += 1; });
provider.on('registration_create.error', () => { counts.registrations_refused += 1; });
provider.on('grant.revoked', () => { counts.grants_revoked += 1; });
provider.on('device_authorization.success', () => { counts.device_requests += 1; });
provider.on('grant.success', (ctx) => {
  const kind = ctx.oidc.params.grant_type;
  if (kind === 'refresh_token') counts.refreshes_ok += 1;
  else if (kind === 'client_credentials') counts.client_credentials_ok += 1;
  else counts.logins_finished += 1;
});
provider.on('grant.error', (ctx, error) => {
  if (error.error === 'authorization_pending' || error.error === 'slow_down') return;
  counts.token_errors.push(`${error.error}: ${error.error_detail ?? error.error_description ?? ''}`);
  if (ctx.oidc?.params?.grant_type === 'refresh_token') counts.refreshes_refused += 1;
  if (error.error_detail === 'refresh token already used') counts.reuse_detected += 1;
});
provider.on('server_error', (ctx, error) => { console.error(error); });

const serve = provider.callback();
server.on('request', (request, response) => {
  const path = request.url.split('?')[0];
  if (path === '/lab/counts') {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(counts));
    return;
  }
  if (path === '/auth') counts.authorize_requests += 1;
  if (path === '/token/revocation') counts.revocations += 1;
  serve(request, response);
});
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
console.log(JSON.stringify({ issuer }));
