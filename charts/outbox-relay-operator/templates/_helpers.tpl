{{/* Name of every object of the operator itself, also of its Lease: one operator a namespace. */}}
{{- define "operator.name" -}}
outbox-relay-operator
{{- end }}

{{/* Name of what is not in a namespace, or in others' namespaces: two releases must not share it. */}}
{{- define "operator.fullname" -}}
{{ printf "outbox-relay-operator-%s" .Release.Namespace | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "operator.selector" -}}
app.kubernetes.io/name: outbox-relay-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "operator.labels" -}}
{{ include "operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* An image reference: (dict "root" $ "image" .Values.image) */}}
{{- define "operator.image" -}}
{{- $registry := .root.Values.image.registry -}}
{{- if $registry }}{{ trimSuffix "/" $registry }}/{{ end -}}
{{ .image.repository }}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end -}}
{{- end }}

{{/*
What the operator may do where it serves. It holds what it grants to relays (ConfigMaps, Leases), so that it needs
neither `escalate` nor `bind`; it deletes nothing, since owner references do; it reads no Secrets.
*/}}
{{- define "operator.rules" -}}
- apiGroups: [outboxrelay.io]
  resources: [outboxrelays]
  verbs: [get, list, watch]
- apiGroups: [outboxrelay.io]
  resources: [outboxrelays/status]
  verbs: [patch]
# For blockOwnerDeletion, where OwnerReferencesPermissionEnforcement is on.
- apiGroups: [outboxrelay.io]
  resources: [outboxrelays/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [create, get, list, patch, watch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, get, list, patch, update, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, get, patch]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [create, get, list, patch, watch]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create, get, patch, update]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings, roles]
  verbs: [create, get, list, patch, watch]
{{- end }}
