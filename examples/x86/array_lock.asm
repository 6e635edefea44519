; Anderson's lock: whoever comes takes the next place in an array and waits there. Three threads fit into four places.
; source: T. E. Anderson, The performance of spin lock alternatives for shared-memory multiprocessors, 1990
; expect: sc holds, tso holds, pso violated

begin shared_data
    place dd 1, 0, 0, 0
    next db 0
end shared_data
begin unsafe_prop
    eip[$t1] = cs && eip[$t2] = cs
end unsafe_prop
begin thread_code t 3
        mov ebx, 0
again:  mov bl, 1
        lock xadd byte [next], bl
        movzx ebx, bl
        and ebx, 3
wait:   cmp dword [place + ebx*4], 0
        je wait
        mov dword [place + ebx*4], 0
cs:     inc ebx
        and ebx, 3
        mov dword [place + ebx*4], 1
        jmp again
end thread_code
