; The parity flag is set where the low byte of a result has an even number of ones: of 3 and of
; 0 - 1, but not of 7, and what is above the low byte does not count.
; source: Intel 64 and IA-32 architectures, software developer's manual, EFLAGS
; expect: sc holds, tso holds, pso holds

begin shared_data
    x dd 3
end shared_data
begin unsafe_prop
    eip[$t] = bad
end unsafe_prop
begin init_code
    start_threads
end init_code
begin thread_code
    mov eax, dword [x]
    test eax, eax
    jnp bad
    add eax, 4
    jp bad
    sub eax, 8
    jpo bad
    mov eax, 0x101
    or eax, 0
    jpe bad
    mov ebx, 0x1FF
    cmp ebx, 0
    jpo bad
    jmp good
bad: nop
good: nop
end thread_code
